// See sort_nodes.h.
#include "compiler/frontend/onnx/wire/sort_nodes.h"

#include "compiler/frontend/onnx/onnx.pb.h"
#include "compiler/frontend/onnx/wire/load.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

namespace firn::onnx {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<wire::NodeProto>;
using Names = std::set<std::string>;

// The nodes of a list by the nodes in it whose outputs they read.
class NodeUses {
public:
  // `given`: names that the list has without its nodes.
  NodeUses(const Nodes& nodes, const Names& given) : nodes_(nodes) {
    for (int i = 0; i < nodes.size(); ++i)
      for (const std::string& name : nodes[i].output())
        if (!name.empty() && !given.count(name)) makers_.emplace(name, i);
    read_.resize(static_cast<size_t>(nodes.size()));
    for (int i = 0; i < nodes.size(); ++i) {
      Names names;
      add_reads(nodes[i], names);
      for (const std::string& name : names)
        // A node does not wait for its own outputs: the importer finds out whether the name means another
        // value.
        if (auto made = makers_.find(name); made != makers_.end() && made->second != i)
          read_[static_cast<size_t>(i)].push_back(made->second);
    }
  }

  // The numbers of the nodes in order, without those in cycles or behind them.
  std::vector<int> sorted() const {
    std::vector<std::vector<int>> readers(read_.size());
    std::vector<size_t> missing(read_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < read_.size(); ++i) {
      missing[i] = read_[i].size();
      for (int made : read_[i]) readers[static_cast<size_t>(made)].push_back(static_cast<int>(i));
      if (missing[i] == 0) ready.push(static_cast<int>(i));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (int reader : readers[static_cast<size_t>(order.back())])
        if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
    return order;
  }

  // An error that names two nodes of a cycle, one of which reads the other; `order` lacks the nodes in
  // cycles.
  Diagnostic cycle(const std::vector<int>& order) const {
    std::vector<bool> is_left(read_.size(), true), is_seen(read_.size(), false);
    for (int i : order) is_left[static_cast<size_t>(i)] = false;
    auto maker_of = [&](int reader) {
      const std::vector<int>& makers = read_[static_cast<size_t>(reader)];
      return *std::find_if(makers.begin(), makers.end(),
                           [&](int made) { return is_left[static_cast<size_t>(made)]; });
    };
    auto at = static_cast<int>(std::find(is_left.begin(), is_left.end(), true) - is_left.begin());
    for (; !is_seen[static_cast<size_t>(at)]; at = maker_of(at)) is_seen[static_cast<size_t>(at)] = true;
    int maker = maker_of(at);
    Names names;
    add_reads(nodes_[at], names);
    auto name = std::find_if(names.begin(), names.end(), [&](const std::string& each) {
      auto made = makers_.find(each);
      return made != makers_.end() && made->second == maker;
    });
    return model_error(node_label(nodes_[at], at) + ": reads '" + *name + "' of " +
                       node_label(nodes_[maker], maker) +
                       ", which needs what this node makes; nodes may not form a cycle");
  }

private:
  const Nodes& nodes_;
  std::unordered_map<std::string, int> makers_; // by the names of their outputs
  std::vector<std::vector<int>> read_;          // by node: the nodes whose outputs it reads
};

void put_in_order(Nodes& nodes, const std::vector<int>& order) {
  if (std::is_sorted(order.begin(), order.end())) return;
  Nodes sorted;
  for (int i : order) *sorted.Add() = std::move(nodes[i]);
  nodes = std::move(sorted);
}

void sort_within(Nodes& nodes);

void sort_graph(wire::GraphProto& graph) {
  Nodes& nodes = *graph.mutable_node();
  sort_within(nodes);
  std::vector<int> order = NodeUses(nodes, given_names(graph)).sorted();
  if (static_cast<int>(order.size()) == nodes.size()) put_in_order(nodes, order);
}

// Sorts the graphs within the nodes first: their order decides which names they capture.
void sort_within(Nodes& nodes) {
  for (auto& node : nodes)
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) sort_graph(*attribute.mutable_g());
      for (auto& graph : *attribute.mutable_graphs()) sort_graph(graph);
    }
}

Result sort_list(Nodes& nodes, const Names& given) {
  sort_within(nodes);
  NodeUses uses(nodes, given);
  std::vector<int> order = uses.sorted();
  if (static_cast<int>(order.size()) < nodes.size()) return uses.cycle(order);
  put_in_order(nodes, order);
  return {};
}

} // namespace

Result sort_nodes(wire::ModelProto& model) {
  wire::GraphProto& graph = *model.mutable_graph();
  if (Result sorted = sort_list(*graph.mutable_node(), given_names(graph)); !sorted) return sorted;
  for (auto& function : *model.mutable_functions()) {
    Names given(function.input().begin(), function.input().end());
    if (Result sorted = sort_list(*function.mutable_node(), given); !sorted)
      return model_error("function '" + function.name() + "': " + sorted.error().message);
  }
  return {};
}

} // namespace firn::onnx
