// Convolutions and products with weights are layers. Sums, products of values and pools are layers too where
// they lie between others, so that what is stored between them is narrow. An operand that can be added or
// multiplied while the layer that makes it still holds it in registers is not rounded before.
#include "compiler/quantize/layers.h"

#include <algorithm>
#include <array>

namespace firn::quantize {
namespace {

constexpr std::array kMovements = {"Reshape",  "Transpose", "Flatten", "Squeeze",      "Unsqueeze",
                                   "Identity", "MaxPool",   "Slice",   "DepthToSpace", "SpaceToDepth",
                                   "Concat",   "Gather",    "Split",   "Expand"};
constexpr std::array kUnary = {
    "Relu",     "Clip", "LeakyRelu", "PRelu",    "Sigmoid", "HardSigmoid",    "HardSwish", "Tanh",
    "Elu",      "Selu", "Celu",      "Softplus", "Gelu",    "Mish",           "Erf",       "Exp",
    "Softsign", "Abs",  "Neg",       "Sqrt",     "Cast",    "ThresholdedRelu"};
constexpr std::array kBinary = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"};

template <size_t N> bool is_one_of(const wire::NodeProto& node, const std::array<const char*, N>& names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return is_operator(node, name); });
}

bool is_f32(const LiteralRef& literal, size_t rank) {
  return literal && literal->dtype() == DType::F32 && literal->dims().size() == rank &&
         literal->num_elements() > 0;
}

std::string input_of(const wire::NodeProto& node, int number) {
  return number < node.input_size() ? node.input(number) : std::string();
}

class Finder {
public:
  explicit Finder(const Model& model) : model_(model), nodes_(model.graph().node()) {}

  std::optional<Layer> layer_of(int number) const {
    const wire::NodeProto& node = nodes_[number];
    if (node.output_size() == 0) return std::nullopt;
    if (is_operator(node, "Conv")) return convolution(number, 0);
    if (is_operator(node, "ConvTranspose")) return convolution(number, 1);
    if (is_operator(node, "Gemm")) return gemm(number);
    if (is_operator(node, "MatMul")) return product(number);
    return std::nullopt;
  }

  // A Gather of rows of a table, if it has enough elements to be worth quantising.
  std::optional<Layer> lookup(int number) const {
    const wire::NodeProto& node = nodes_[number];
    if (!is_operator(node, "Gather") || node.input_size() != 2 || int_attribute(node, "axis", 0) != 0)
      return std::nullopt;
    LiteralRef table = model_.constant(node.input(0));
    constexpr int64_t kFewest = 4096;
    if (!is_f32(table, 2) || table->num_elements() < kFewest || model_.constant(node.input(1)))
      return std::nullopt;
    Layer layer = make(number, Layer::Kind::Lookup);
    layer.weight = layer.weight_axis = 0;
    return layer;
  }

  // Sums, products and pools, given the layers that feed and follow them.
  std::optional<Layer> between(int number, const std::set<int>& layers) const {
    const wire::NodeProto& node = nodes_[number];
    bool pools = is_operator(node, "GlobalAveragePool") || is_operator(node, "AveragePool") ||
                 is_operator(node, "ReduceMean");
    bool combines = is_operator(node, "Add") || is_operator(node, "Mul");
    if (!pools && !combines) return std::nullopt;
    std::vector<std::string> inputs = variable_inputs(model_, node);
    bool follows = std::any_of(inputs.begin(), inputs.end(),
                               [&](const std::string& input) { return follows_layer(input, layers); });
    if (!follows || !reaches_layer(node.output(0), layers)) return std::nullopt;
    Layer layer = make(number, pools ? Layer::Kind::Pool : Layer::Kind::Elementwise);
    if (pools) {
      layer.activations = {0};
      return layer;
    }
    if (inputs.size() != 2 || inputs[0] == inputs[1]) return std::nullopt;
    layer.activations = stored_operands(node);
    if (layer.activations.empty()) return std::nullopt;
    return layer;
  }

private:
  Layer make(int number, Layer::Kind kind) const {
    Layer layer;
    layer.node = number;
    layer.kind = kind;
    const wire::NodeProto& node = nodes_[number];
    layer.name = node.name().empty() ? node.output(0) : node.name();
    return layer;
  }

  std::optional<Layer> convolution(int number, int out_axis) const {
    const wire::NodeProto& node = nodes_[number];
    LiteralRef weight = model_.constant(input_of(node, 1)), bias = model_.constant(input_of(node, 2));
    bool has_bias = !input_of(node, 2).empty();
    if (!weight || weight->dims().size() < 3 || !is_f32(weight, weight->dims().size()) ||
        model_.constant(node.input(0)) || (has_bias && !is_f32(bias, 1)))
      return std::nullopt;
    Layer layer = make(number, Layer::Kind::Convolution);
    int64_t groups = int_attribute(node, "group", 1);
    bool by_channel = out_axis == 0 || groups == 1;
    layer.activations = {0};
    layer.weight = 1;
    layer.bias = has_bias ? 2 : -1;
    layer.weight_axis = by_channel ? out_axis : -1;
    layer.channel_axis = 1;
    layer.channels = weight->dims()[static_cast<size_t>(out_axis)] * (out_axis == 1 ? groups : 1);
    return layer;
  }

  std::optional<Layer> gemm(int number) const {
    const wire::NodeProto& node = nodes_[number];
    LiteralRef weight = model_.constant(input_of(node, 1)), bias = model_.constant(input_of(node, 2));
    if (!is_f32(weight, 2) || model_.constant(node.input(0))) return std::nullopt;
    Layer layer = make(number, Layer::Kind::Product);
    layer.activations = {0};
    layer.weight = 1;
    layer.weight_axis = int_attribute(node, "transB", 0) != 0 ? 0 : 1;
    layer.channel_axis = -1;
    layer.channels = weight->dims()[static_cast<size_t>(layer.weight_axis)];
    bool plain = float_attribute(node, "alpha", 1) == 1 && float_attribute(node, "beta", 1) == 1;
    if (plain && is_f32(bias, 1) && bias->num_elements() == layer.channels) layer.bias = 2;
    if (!plain || (layer.bias < 0 && !input_of(node, 2).empty())) layer.channels = 0;
    return layer;
  }

  const wire::NodeProto* dequantization_of_constant(const std::string& value) const {
    int made = model_.producer(value);
    bool is_one =
        made >= 0 && is_operator(nodes_[made], "DequantizeLinear") && model_.constant(nodes_[made].input(0));
    return is_one ? &nodes_[made] : nullptr;
  }
  bool is_matrix_of_bytes(const wire::NodeProto& dequantization) const {
    LiteralRef integers = model_.constant(dequantization.input(0));
    return bit_width(integers->dtype()) == 8 && integers->dims().size() == 2 &&
           int_attribute(dequantization, "block_size", 0) == 0;
  }

  std::optional<Layer> product(int number) const {
    const wire::NodeProto& node = nodes_[number];
    if (node.input_size() != 2 || model_.constant(node.input(0))) return std::nullopt;
    Layer layer = make(number, Layer::Kind::Product);
    layer.activations = {0};
    layer.channel_axis = -1;
    LiteralRef weight = model_.constant(node.input(1));
    if (!weight) {
      // Weights that are integers in the file stay what they are; those of other widths meet floats.
      const wire::NodeProto* made = dequantization_of_constant(node.input(1));
      if (!made) layer.activations = {0, 1};
      bool computes = !made || is_matrix_of_bytes(*made);
      return computes ? std::optional(layer) : std::nullopt;
    }
    if (weight->dtype() != DType::F32 || weight->dims().size() < 2 || weight->num_elements() == 0)
      return std::nullopt;
    layer.weight = 1;
    // ONNX Runtime's integer product takes a scale per column of a single matrix alone.
    layer.weight_axis = weight->dims().size() == 2 ? 1 : -1;
    layer.channels = weight->dims().back();
    return layer;
  }

  // The value that this one is made from by elementwise functions of one operand and moves.
  std::string root(std::string value) const {
    for (;;) {
      int made = model_.producer(value);
      if (made < 0) return value;
      const wire::NodeProto& node = nodes_[made];
      if (!is_elementwise_of_one(model_, node)) return value;
      value = variable_inputs(model_, node)[0];
    }
  }

  // Whether a layer makes the value, but for moves, functions of one operand, sums and products behind it.
  bool follows_layer(const std::string& value, const std::set<int>& layers) const {
    std::set<std::string> seen;
    std::vector<std::string> open{value};
    while (!open.empty()) {
      std::string next = root(open.back());
      open.pop_back();
      int made = model_.producer(next);
      if (made < 0 || !seen.insert(next).second) continue;
      if (layers.count(made)) return true;
      const wire::NodeProto& node = nodes_[made];
      if (!moves_values(model_, node) && !is_operator(node, "Mul") && !is_operator(node, "Add")) continue;
      for (const std::string& input : variable_inputs(model_, node)) open.push_back(input);
    }
    return false;
  }

  // Whether a layer reads the value, at most moved and through functions of one operand.
  bool reaches_layer(const std::string& value, const std::set<int>& layers) const {
    std::set<int> seen;
    std::vector<int> open = model_.readers(value);
    while (!open.empty()) {
      int reader = open.back();
      open.pop_back();
      if (!seen.insert(reader).second) continue;
      if (layers.count(reader)) return true;
      const wire::NodeProto& node = nodes_[reader];
      if (!moves_values(model_, node) && !is_elementwise_of_one(model_, node)) continue;
      for (const std::string& output : node.output())
        open.insert(open.end(), model_.readers(output).begin(), model_.readers(output).end());
    }
    return false;
  }

  // Whether the value comes from a layer by functions of one operand, and nothing else reads it on its way to
  // `reader`.
  bool stays_in_registers(std::string value, int reader) const {
    for (;;) {
      if (!model_.is_only_for(value, reader)) return false;
      int made = model_.producer(value);
      if (made < 0) return false;
      if (layer_of(made)) return true;
      if (!is_elementwise_of_one(model_, nodes_[made])) return false;
      reader = made;
      value = variable_inputs(model_, nodes_[made])[0];
    }
  }

  // All operands but the one made last, if that stays in registers; none if both come from one value.
  std::vector<int> stored_operands(const wire::NodeProto& node) const {
    std::string first = root(node.input(0)), second = root(node.input(1));
    if (first == second) return {};
    int number = model_.producer(node.output(0));
    int last = model_.producer(first) > model_.producer(second) ? 0 : 1;
    if (stays_in_registers(node.input(last), number)) return {1 - last};
    return {0, 1};
  }

  const Model& model_;
  const google::protobuf::RepeatedPtrField<wire::NodeProto>& nodes_;
};

} // namespace

std::vector<std::string> variable_inputs(const Model& model, const wire::NodeProto& node) {
  std::vector<std::string> inputs;
  for (const std::string& input : node.input())
    if (!input.empty() && !model.constant(input)) inputs.push_back(input);
  return inputs;
}

bool moves_values(const Model& model, const wire::NodeProto& node) {
  if (!is_one_of(node, kMovements) || node.input_size() == 0 || model.constant(node.input(0))) return false;
  if (is_operator(node, "MaxPool")) return node.output_size() == 1;
  if (is_operator(node, "Concat"))
    return variable_inputs(model, node).size() == static_cast<size_t>(node.input_size());
  return true;
}

bool is_elementwise_of_one(const Model& model, const wire::NodeProto& node) {
  if (node.output_size() != 1 || variable_inputs(model, node).size() != 1) return false;
  return is_one_of(node, kUnary) || is_one_of(node, kBinary) || is_operator(node, "BatchNormalization");
}

Expected<std::vector<Layer>> find_layers(const Model& model, const std::vector<std::string>& keep) {
  std::set<std::string> kept(keep.begin(), keep.end()), seen;
  for (const auto& node : model.graph().node()) {
    seen.insert(node.name());
    if (node.output_size() > 0) seen.insert(node.output(0));
  }
  for (const std::string& name : keep)
    if (!seen.count(name)) return usage_error("--keep " + name + ": the model has no node of that name");
  auto is_kept = [&](const wire::NodeProto& node) {
    return kept.count(node.name()) || (node.output_size() > 0 && kept.count(node.output(0)));
  };
  Finder finder(model);
  std::map<int, Layer> layers;
  std::set<int> numbers;
  const int count = model.graph().node_size();
  for (int i = 0; i < count; ++i)
    if (auto layer = finder.layer_of(i); layer && !is_kept(model.graph().node(i))) {
      layers.emplace(i, std::move(*layer));
      numbers.insert(i);
    }
  // From the end, so that a sum that feeds a sum which feeds a layer is found.
  for (int i = count; i-- > 0;)
    if (auto layer = finder.between(i, numbers); layer && !is_kept(model.graph().node(i))) {
      layers.emplace(i, std::move(*layer));
      numbers.insert(i);
    }
  // Nothing is computed in integers on account of a table alone.
  for (int i = 0; i < count && !layers.empty(); ++i)
    if (auto layer = finder.lookup(i); layer && !is_kept(model.graph().node(i)))
      layers.emplace(i, std::move(*layer));
  std::vector<Layer> list;
  for (auto& [number, layer] : layers) list.push_back(std::move(layer));
  return list;
}

} // namespace firn::quantize
