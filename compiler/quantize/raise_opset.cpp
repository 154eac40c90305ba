// From opset 9 to 12 up to 13: what changed between is written as the new version wants it.
#include "compiler/quantize/normalise_model.h"

#include <algorithm>
#include <array>

namespace firn::quantize {
namespace {

constexpr int kWanted = 13, kOldest = 9;

// Operators whose meaning some version after the given one changed, without a rule below.
struct Change {
  const char* name;
  int since;
};
constexpr std::array kChanges = {Change{"Upsample", 10}, Change{"Resize", 11}, Change{"TopK", 11},
                                 Change{"Scan", 11}, Change{"GatherElements", 11}};

void remove_attribute(wire::NodeProto& node, const std::string& name) {
  auto& attributes = *node.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;)
    if (attributes[i].name() == name) attributes.DeleteSubrange(i, 1);
}

bool is_softmax(const wire::NodeProto& node) {
  return is_operator(node, "Softmax") || is_operator(node, "LogSoftmax") || is_operator(node, "Hardmax");
}

class Raise {
public:
  Raise(Model& model, int from, const std::map<std::string, int64_t>& ranks)
      : model_(model), from_(from), ranks_(ranks) {}

  Result node(wire::NodeProto& node) {
    if (!onnx::canonical_domain(node.domain()).empty()) return {};
    for (const auto& attribute : node.attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0) return refuse(node, "holds a graph");
    for (const Change& change : kChanges)
      if (is_operator(node, change.name) && from_ < change.since)
        return refuse(node, "means another thing there");
    const std::string& op = node.op_type();
    if (from_ < 10 && op == "Slice") return slice(node);
    if (from_ < 11 && op == "Clip") return clip(node);
    if (from_ < 11 && op == "Pad") return pad(node);
    if (from_ < 11 && op == "Scatter") return node.set_op_type("ScatterElements"), Result();
    if (from_ < 12 && op == "Dropout") return dropout(node);
    if (op == "Squeeze" || op == "Unsqueeze" || op == "ReduceSum")
      return ints_to_input(node, "axes", 1), Result();
    if (op == "Split") return ints_to_input(node, "split", 1), Result();
    if (is_softmax(node)) return softmax(node);
    return {};
  }

private:
  Result refuse(const wire::NodeProto& node, const std::string& why) const {
    return unsupported_error(label(node) + " of opset " + std::to_string(from_) + " " + why +
                             "; quantised models want opset " + std::to_string(kWanted) +
                             ": convert the model first (onnx.version_converter)");
  }

  void add_input(wire::NodeProto& node, int at, const LiteralRef& value) {
    while (node.input_size() <= at) node.add_input("");
    node.set_input(at, model_.add_constant(node.output(0) + "_" + std::to_string(at), value));
  }

  bool ints_to_input(wire::NodeProto& node, const char* name, int at) {
    const auto* attribute = find_attribute(node, name);
    if (!attribute) return false;
    add_input(node, at, Literal::of_i64({attribute->ints().begin(), attribute->ints().end()}));
    remove_attribute(node, name);
    return true;
  }

  Result slice(wire::NodeProto& node) {
    bool has_axes = find_attribute(node, "axes") != nullptr;
    if (!ints_to_input(node, "starts", 1) || !ints_to_input(node, "ends", 2))
      return refuse(node, "lacks its bounds");
    if (has_axes) ints_to_input(node, "axes", 3);
    return {};
  }

  Result clip(wire::NodeProto& node) {
    const char* names[] = {"min", "max"};
    for (int i = 0; i < 2; ++i)
      if (const auto* attribute = find_attribute(node, names[i])) {
        add_input(node, i + 1, Literal::scalar(DType::F32, attribute->f()));
        remove_attribute(node, names[i]);
      }
    return {};
  }

  Result pad(wire::NodeProto& node) {
    float value = float_attribute(node, "value", 0);
    if (!ints_to_input(node, "pads", 1)) return refuse(node, "lacks its pads");
    add_input(node, 2, Literal::scalar(DType::F32, value));
    remove_attribute(node, "value");
    return {};
  }

  // Dropout is the identity when nothing is trained.
  Result dropout(wire::NodeProto& node) {
    for (int i = 1; i < node.output_size(); ++i)
      if (!model_.readers(node.output(i)).empty()) return refuse(node, "gives a mask that is read");
    std::string result = node.output(0);
    node.clear_output();
    node.add_output(result);
    node.clear_attribute();
    node.set_op_type("Identity");
    return {};
  }

  // Old softmaxes take all axes from their own on as one: the new meaning is the same for the last axis
  // alone.
  Result softmax(wire::NodeProto& node) {
    auto rank = ranks_.find(node.input(0));
    int64_t axis = int_attribute(node, "axis", 1);
    bool is_last = axis == -1 || (rank != ranks_.end() && axis == rank->second - 1);
    if (!is_last) return refuse(node, "takes several axes as one");
    remove_attribute(node, "axis");
    add_int_attribute(node, "axis", -1);
    return {};
  }

  Model& model_;
  int from_;
  const std::map<std::string, int64_t>& ranks_;
};

} // namespace

std::vector<std::string> softmax_operands(const Model& model) {
  std::vector<std::string> operands;
  if (model.opset() >= kWanted) return operands;
  for (const auto& node : model.graph().node())
    if (is_softmax(node) && node.input_size() > 0) operands.push_back(node.input(0));
  return operands;
}

Result raise_opset(Model& model, const std::map<std::string, int64_t>& ranks) {
  int from = model.opset();
  if (from >= kWanted) return {};
  if (from < kOldest)
    return unsupported_error("the model is of opset " + std::to_string(from) +
                             ", quantised models want opset " + std::to_string(kWanted) +
                             " and are made from " + std::to_string(kOldest) +
                             " on: convert the model first (onnx.version_converter)");
  Raise raise(model, from, ranks);
  for (auto& node : *model.graph().mutable_node())
    if (Result done = raise.node(node); !done) return done;
  model.set_opset(kWanted);
  model.index();
  return {};
}

} // namespace firn::quantize
