// Facts that a model file states, and the operators in it that Firn lacks.
#include "compiler/frontend/onnx/import/facts.h"

#include "compiler/frontend/onnx/import/custom_operator.h"
#include "compiler/frontend/onnx/import/dim_options.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/support/nearest.h"

#include <algorithm>
#include <set>

namespace firn::onnx {
namespace {

std::string shape_text(const wire::TypeProto::Tensor& tensor) {
  if (!tensor.has_shape()) return "[?]";
  std::string text = "[";
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    if (i) text += ",";
    if (dim.has_dim_value())
      text += std::to_string(dim.dim_value());
    else
      text += dim.dim_param().empty() ? "?" : dim.dim_param();
  }
  return text + "]";
}

std::string type_text(const wire::TypeProto& type) {
  if (type.has_tensor_type())
    return wire_dtype_name(type.tensor_type().elem_type()) + shape_text(type.tensor_type());
  if (type.has_sequence_type()) return "sequence<" + type_text(type.sequence_type().elem_type()) + ">";
  if (type.has_optional_type()) return "optional<" + type_text(type.optional_type().elem_type()) + ">";
  if (type.has_sparse_tensor_type())
    return "sparse " + wire_dtype_name(type.sparse_tensor_type().elem_type()) +
           shape_text(type.sparse_tensor_type());
  if (type.has_map_type())
    return "map<" + wire_dtype_name(type.map_type().key_type()) + ", " +
           type_text(type.map_type().value_type()) + ">";
  return "?";
}

// The names of an input's dims, empty where they are numbers.
std::vector<std::string> open_dims(const wire::ValueInfoProto& input) {
  std::vector<std::string> names;
  if (input.type().has_map_type()) names.push_back(map_size_name(input.name()));
  for (const auto& dim : input.type().tensor_type().shape().dim())
    names.push_back(dim.has_dim_value()
                        ? std::string()
                        : DimOptions::name_of(input.name(), static_cast<int>(names.size()), dim.dim_param()));
  return names;
}

// Calls f(graph) for every graph in the attributes of a node.
template <class F> void for_each_subgraph(const wire::NodeProto& node, F f) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) f(attribute.g());
    for (const auto& graph : attribute.graphs()) f(graph);
  }
}

void count_graph(const wire::GraphProto& graph, ModelFacts& facts) {
  for (const auto& node : graph.node()) {
    std::string domain = canonical_domain(node.domain());
    ++facts.operators[domain.empty() ? node.op_type() : domain + ":" + node.op_type()];
    ++facts.nodes;
    for_each_subgraph(node, [&](const wire::GraphProto& inner) { count_graph(inner, facts); });
  }
  for (const auto& tensor : graph.initializer()) {
    auto count = checked_num_elements({tensor.dims().begin(), tensor.dims().end()});
    auto dtype = dtype_from_wire(tensor.data_type());
    if (!count || !dtype || *count > int64_t{1} << 50) continue;
    facts.parameters += *count;
    facts.parameter_bytes += static_cast<int64_t>(byte_size(*dtype, static_cast<size_t>(*count)));
  }
}

// Walks all nodes that an import may meet, function bodies once.
class UnsupportedScan {
public:
  UnsupportedScan(const LoadedModel& model, const ImportOptions& options) : options_(options) {
    for (const auto& function : model.proto->functions())
      functions_[{canonical_domain(function.domain()), function.name(), function.overload()}] = &function;
  }

  void nodes(const google::protobuf::RepeatedPtrField<wire::NodeProto>& nodes,
             const std::map<std::string, int>& opsets, bool in_branch) {
    for (int i = 0; i < nodes.size(); ++i) {
      const auto& node = nodes[i];
      std::string domain = canonical_domain(node.domain());
      auto function = functions_.find({domain, node.op_type(), node.overload()});
      auto opset = opsets.find(domain);
      int version = opset == opsets.end() ? 1 : opset->second;
      if (find_custom(options_, domain, node.op_type())) continue;
      if (function != functions_.end())
        body(*function->second, opsets, in_branch);
      else if (!node.op_type().empty() && !find_operator(domain, node.op_type(), version))
        note(node, i, domain, version, in_branch);
      bool branches = node.op_type() == "If" && domain.empty();
      for_each_subgraph(node, [&](const wire::GraphProto& graph) {
        this->nodes(graph.node(), opsets, in_branch || branches);
      });
    }
  }

  UnsupportedOperators result() const {
    UnsupportedOperators list;
    for (const auto& [key, entry] : found_) list.operators.push_back(entry);
    list.certain = certain_;
    return list;
  }

private:
  void body(const wire::FunctionProto& function, std::map<std::string, int> opsets, bool in_branch) {
    if (!visited_.insert(&function).second) return;
    for (const auto& entry : function.opset_import())
      if (entry.version() >= 1 && entry.version() <= kVariadic)
        opsets[canonical_domain(entry.domain())] = static_cast<int>(entry.version());
    nodes(function.node(), opsets, in_branch);
  }

  void note(const wire::NodeProto& node, int index, const std::string& domain, int version, bool in_branch) {
    auto& entry = found_[{shown_domain(domain), node.op_type(), version}];
    if (entry.count++ == 0) {
      entry.domain = shown_domain(domain);
      entry.name = node.op_type();
      entry.version = version;
      entry.first = node.name().empty() ? "node " + std::to_string(index) : node.name();
    }
    certain_ |= !in_branch;
  }

  const ImportOptions& options_;
  std::map<std::array<std::string, 3>, const wire::FunctionProto*> functions_;
  std::set<const wire::FunctionProto*> visited_;
  std::map<std::tuple<std::string, std::string, int>, UnsupportedOperator> found_;
  bool certain_ = false;
};

} // namespace

UnsupportedOperators find_unsupported(const LoadedModel& model, const ImportOptions& options) {
  UnsupportedScan scan(model, options);
  scan.nodes(model.proto->graph().node(), model.opsets, false);
  return scan.result();
}

ModelFacts read_facts(const LoadedModel& model, const ImportOptions& options) {
  ModelFacts facts;
  const wire::ModelProto& proto = *model.proto;
  facts.ir_version = proto.ir_version();
  for (const auto& [domain, version] : model.opsets) facts.opsets.emplace_back(shown_domain(domain), version);
  facts.producer = proto.producer_name();
  if (!proto.producer_version().empty()) facts.producer += " " + proto.producer_version();
  facts.graph_name = proto.graph().name();
  facts.digest = FileDigest(model.source.file);
  count_graph(proto.graph(), facts);
  std::set<std::string> initializers;
  for (const auto& tensor : proto.graph().initializer()) initializers.insert(tensor.name());
  for (const auto& tensor : proto.graph().sparse_initializer()) initializers.insert(tensor.values().name());
  for (const auto& input : proto.graph().input())
    facts.inputs.push_back(
        {input.name(), type_text(input.type()), initializers.count(input.name()) != 0, open_dims(input)});
  for (const auto& output : proto.graph().output())
    facts.outputs.push_back({output.name(), type_text(output.type())});
  facts.unsupported = find_unsupported(model, options).operators;
  return facts;
}

namespace {

// ": did you mean 'Relu'?" for a name of ONNX's own domain that comes near others; empty if there are none.
std::string nearest_operators(const UnsupportedOperator& entry) {
  std::vector<std::string> names;
  for (const OperatorRow& row : operator_table())
    if (shown_domain(row.domain) == entry.domain && (names.empty() || names.back() != row.name))
      names.emplace_back(row.name);
  std::string near = entry.domain == shown_domain("") ? nearest_words(entry.name, names) : "";
  return near.empty() ? "" : ": did you mean " + near + "?";
}

} // namespace

std::string unsupported_message(const std::vector<UnsupportedOperator>& operators) {
  size_t name_width = 0, count_width = 0;
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& entry : operators) {
    rows.emplace_back(entry.domain + "." + entry.name + " (opset " + std::to_string(entry.version) + ")",
                      entry.count == 1 ? "1 node: " : std::to_string(entry.count) + " nodes, first: ");
    name_width = std::max(name_width, rows.back().first.size());
    count_width = std::max(count_width, rows.back().second.size());
  }
  std::string text = operators.size() == 1
                         ? "1 operator is not supported"
                         : std::to_string(operators.size()) + " operators are not supported";
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].first.resize(name_width, ' ');
    rows[i].second.resize(count_width, ' ');
    text += "\n  " + rows[i].first + "   " + rows[i].second + operators[i].first +
            nearest_operators(operators[i]);
  }
  return text + "\nA custom operator can be supplied with --custom-op " + operators[0].domain + ":" +
         operators[0].name + "=symbol (firn help custom-op).";
}

} // namespace firn::onnx
