// Packs trees into entries that compare and numbers of leaves.
#include "compiler/plan/trees/packed_trees.h"

#include "compiler/plan/trees/leaf_pool.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace firn::plan {
namespace {

constexpr int64_t kUnseen = INT64_MIN, kOpen = INT64_MIN + 1;
constexpr int kLinkBits = 32;
// More values than that have no numbers that fit in links.
constexpr int64_t kMaxValues = 1 << 20;

class TreePacker {
public:
  explicit TreePacker(const TreeEnsemble& trees)
      : trees_(trees), leaves_(trees.values, trees.targets ? 1 : trees.results),
        places_(static_cast<size_t>(trees.entries()), kUnseen), depths_(places_.size(), 0) {}

  std::optional<PackedTrees> run() {
    std::vector<int64_t> roots;
    for (int64_t root : trees_.roots->to_ints()) {
      if (!visit(root) || depths_[at(root)] > trees_.depth) return std::nullopt;
      roots.push_back(places_[at(root)]);
    }
    if (nodes_.empty()) return std::nullopt;
    return pack(std::move(roots));
  }

private:
  // A comparison. Children are nodes, or leaves as ~number.
  struct Node {
    int64_t entry, feature, within, beyond;
  };
  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  int64_t child(int64_t entry) const { return trees_.links->get_int(entry) >> trees_.shift; }
  bool is_leaf(int64_t entry) const {
    return child(entry) == entry && std::isnan(trees_.thresholds->get_double(entry));
  }

  // Gives the entry and all below it their places, children first. False if one is its own descendant.
  bool visit(int64_t root) {
    std::vector<int64_t> open{root};
    while (!open.empty()) {
      int64_t entry = open.back(), place = places_[at(entry)];
      if (place == kUnseen && !is_leaf(entry)) {
        places_[at(entry)] = kOpen;
        for (int64_t next : {child(entry) - 1, child(entry)}) {
          if (places_[at(next)] == kOpen) return false;
          if (places_[at(next)] == kUnseen) open.push_back(next);
        }
        continue;
      }
      open.pop_back();
      if (place == kUnseen) places_[at(entry)] = ~leaves_.number_of(entry);
      if (place == kOpen) place_node(entry);
    }
    return true;
  }

  void place_node(int64_t entry) {
    int64_t beyond = child(entry), within = beyond - 1;
    depths_[at(entry)] = 1 + std::max(depths_[at(within)], depths_[at(beyond)]);
    Node node{entry, trees_.links->get_int(entry) & ((int64_t{1} << trees_.shift) - 1), places_[at(within)],
              places_[at(beyond)]};
    int64_t& place = places_[at(entry)];
    if (node.within == node.beyond) {
      place = node.within;
      return;
    }
    auto threshold = std::bit_cast<uint64_t>(trees_.thresholds->get_double(entry));
    auto [known, fresh] = numbers_.emplace(std::tuple(threshold, node.feature, node.within, node.beyond),
                                           static_cast<int64_t>(nodes_.size()));
    if (fresh) nodes_.push_back(node);
    place = known->second;
  }

  std::optional<PackedTrees> pack(std::vector<int64_t> roots) {
    std::vector<int64_t> leaves = leaves_.lay_out();
    auto count = static_cast<int64_t>(nodes_.size());
    auto number = [&](int64_t place) { return place >= 0 ? place : count + leaves[at(~place)]; };
    PackedTrees made;
    made.feature_bits = static_cast<int>(trees_.shift);
    int64_t last = count + *std::max_element(leaves.begin(), leaves.end());
    made.number_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(last)));
    if (made.feature_bits + 2 * made.number_bits > kLinkBits) return std::nullopt;
    std::vector<double> thresholds;
    std::vector<uint32_t> links;
    for (const Node& node : nodes_) {
      thresholds.push_back(trees_.thresholds->get_double(node.entry));
      auto within = static_cast<uint32_t>(number(node.within)),
           beyond = static_cast<uint32_t>(number(node.beyond));
      links.push_back(within << (kLinkBits - made.number_bits) |
                      beyond << (kLinkBits - 2 * made.number_bits) | static_cast<uint32_t>(node.feature));
    }
    for (int64_t& root : roots) root = number(root);
    made.thresholds = Literal::of(trees_.thresholds->dtype(), {count}, thresholds);
    made.links = Literal::of(DType::U32, {count}, links);
    made.roots = Literal::of(DType::U16, {trees_.trees()}, roots);
    made.values = leaves_.elements();
    return made;
  }

  const TreeEnsemble& trees_;
  LeafPool leaves_;
  std::vector<int64_t> places_, depths_; // by entry
  std::vector<Node> nodes_;
  std::map<std::tuple<uint64_t, int64_t, int64_t, int64_t>, int64_t> numbers_;
};

} // namespace

std::optional<PackedTrees> pack_trees(const TreeEnsemble& trees) {
  if (!trees.values->values_may_be_used() || trees.trees() == 0 || trees.results == 0 ||
      trees.values->num_elements() > kMaxValues)
    return std::nullopt;
  return TreePacker(trees).run();
}

} // namespace firn::plan
