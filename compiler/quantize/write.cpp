// Pairs of QuantizeLinear and DequantizeLinear are made where a value is made, once for each grid.
#include "compiler/quantize/write.h"

#include <algorithm>
#include <cmath>

namespace firn::quantize {
namespace {

constexpr int kFirstWideOpset = 21; // the first with 16 bits in QuantizeLinear
constexpr char kContribDomain[] = "com.microsoft";

class Writer {
public:
  Writer(const Model& model, const LayerChoices& plan) : original_(model), plan_(plan), edited_(model) {}

  Model run() {
    for (const LayerChoice& planned : plan_.layers)
      if (planned.precision != Precision::Float) {
        for (int input : planned.layer.activations)
          want(operand(original_, planned.layer, input), planned.precision);
        layers_[planned.layer.node] = &planned;
      }
    share_with_moved();
    wire::GraphProto& graph = edited_.graph();
    for (const auto& input : graph.input()) add_pairs(input.name());
    for (int i = 0; i < original_.graph().node_size(); ++i) {
      wire::NodeProto node = original_.graph().node(i);
      auto layer = layers_.find(i);
      if (layer == layers_.end())
        add_other(i, std::move(node));
      else if (layer->second->layer.kind == Layer::Kind::Lookup)
        add_lookup(*layer->second, std::move(node));
      else
        add_layer(*layer->second, std::move(node));
      for (const std::string& output : original_.graph().node(i).output()) add_pairs(output);
    }
    graph.clear_node();
    for (wire::NodeProto& node : nodes_) *graph.add_node() = std::move(node);
    edited_.index();
    return std::move(edited_);
  }

private:
  using Key = std::pair<std::string, Precision>; // a value and which of its grids

  void want(const std::string& value, Precision precision) {
    wanted_[value].emplace(precision, plan_.grid_of(value, precision));
  }

  // Quantises the operands of nodes that only move values into a quantised output, on the output's grid: the
  // values are the same. An operand that others read stays as it is.
  void share_with_moved() {
    for (int i = original_.graph().node_size(); i-- > 0;) {
      const wire::NodeProto& node = original_.graph().node(i);
      if (!moves_values(original_, node)) continue;
      const std::map<Precision, Grid>* grids = nullptr;
      for (const std::string& output : node.output())
        if (auto found = wanted_.find(output); found != wanted_.end() && found->second.size() == 1)
          grids = &found->second;
      if (!grids || node.output_size() != 1) continue;
      auto inputs = variable_inputs(original_, node);
      if (!is_operator(node, "Concat")) inputs.resize(1);
      bool free = std::all_of(inputs.begin(), inputs.end(), [&](const std::string& input) {
        return original_.is_only_for(input, i) && !wanted_.count(input);
      });
      if (!free) continue;
      const std::map<Precision, Grid> copy = *grids;
      for (const std::string& input : inputs) wanted_[input] = copy;
      moved_.insert(i);
    }
  }

  std::string constant(const std::string& wish, DType dtype, double value) {
    return edited_.add_constant(wish, Literal::scalar(dtype, value));
  }

  static DType dtype_of(const Grid& grid) {
    return grid.lowest < 0 ? DType::I8 : grid.highest > 255 ? DType::U16 : DType::U8;
  }

  void add_node(const char* op, const std::vector<std::string>& inputs, const std::string& output,
                DType dtype, int axis = -1) {
    nodes_.push_back(make_node(op, inputs, {output}, output));
    if (axis >= 0) add_int_attribute(nodes_.back(), "axis", axis);
    if (dtype != DType::U16 || original_.opset() >= kFirstWideOpset) return;
    nodes_.back().set_domain(kContribDomain);
    edited_.import_domain(kContribDomain, 1);
  }

  void add_pairs(const std::string& value) {
    auto found = wanted_.find(value);
    if (found == wanted_.end()) return;
    for (const auto& [precision, grid] : found->second) {
      DType dtype = dtype_of(grid);
      std::string scale = constant(value + "_scale", DType::F32, grid.scale);
      std::string zero = constant(value + "_zero_point", dtype, grid.zero_point);
      std::string narrow = edited_.fresh_name(value + "_quantized");
      std::string back = edited_.fresh_name(value + "_dequantized");
      add_node("QuantizeLinear", {value, scale, zero}, narrow, dtype);
      add_node("DequantizeLinear", {narrow, scale, zero}, back, dtype);
      dequantized_[{value, precision}] = back;
    }
  }

  void add_other(int number, wire::NodeProto node) {
    if (moved_.count(number))
      for (std::string& input : *node.mutable_input())
        if (auto found = wanted_.find(input); found != wanted_.end())
          input = dequantized_.at({input, found->second.begin()->first});
    nodes_.push_back(std::move(node));
  }

  void add_layer(const LayerChoice& planned, wire::NodeProto node) {
    const Layer& layer = planned.layer;
    std::string x = node.input(layer.activations[0]);
    for (int input : layer.activations)
      node.set_input(input, dequantized_.at({node.input(input), planned.precision}));
    if (planned.weight) {
      std::string weight = node.input(layer.weight);
      node.set_input(layer.weight, add_weight(weight, *planned.weight));
      add_bias(planned, plan_.grid_of(x, planned.precision), node);
    }
    nodes_.push_back(std::move(node));
    if (layer.bias < 0 && layer.channels > 0 && !planned.correction.empty() &&
        layer.kind == Layer::Kind::Product && is_operator(nodes_.back(), "MatMul"))
      add_sum(planned);
  }

  // Rows of integers times the scales of these rows.
  void add_lookup(const LayerChoice& planned, wire::NodeProto node) {
    const std::string table = node.input(0), result = node.output(0);
    auto name = [&](const char* what) { return edited_.fresh_name(result + what); };
    wire::NodeProto scales = node;
    scales.set_name(name("_scales"));
    scales.set_input(0, edited_.add_constant(table + "_scale", planned.weight->scales));
    scales.set_output(0, scales.name());
    node.set_input(0, edited_.add_constant(table + "_quantized", planned.weight->integers));
    node.set_output(0, name("_quantized"));
    wire::NodeProto wide = make_node("Cast", {node.output(0)}, {name("_cast")}, name("_cast_node"));
    add_int_attribute(wide, "to", onnx::dtype_to_wire(DType::F32));
    std::string behind = edited_.add_constant(result + "_axes", Literal::of_i64({-1}));
    wire::NodeProto column =
        make_node("Unsqueeze", {scales.output(0), behind}, {name("_column")}, name("_column_node"));
    wire::NodeProto product =
        make_node("Mul", {wide.output(0), column.output(0)}, {result}, name("_dequantized"));
    for (wire::NodeProto* each : {&node, &wide, &scales, &column, &product})
      nodes_.push_back(std::move(*each));
  }

  std::string add_weight(const std::string& name, const QuantizedWeight& weight) {
    auto [entry, is_new] = weights_.try_emplace({name, weight.axis});
    if (!is_new) return entry->second;
    std::string integers = edited_.add_constant(name + "_quantized", weight.integers);
    std::string scales = edited_.add_constant(name + "_scale", weight.scales);
    auto zeros = std::make_shared<Literal>(DType::I8, weight.scales->dims());
    std::string zero = edited_.add_constant(name + "_zero_point", zeros);
    entry->second = edited_.fresh_name(name + "_dequantized");
    add_node("DequantizeLinear", {integers, scales, zero}, entry->second, DType::I8, weight.axis);
    return entry->second;
  }

  // The bias and its correction as multiples of the product's step, as integer kernels add them. It stays a
  // float where it does not fit, or where its layer's scale is no vector for it.
  void add_bias(const LayerChoice& planned, const Grid& x, wire::NodeProto& node) {
    const Layer& layer = planned.layer;
    if (layer.channels == 0 || (layer.bias < 0 && planned.correction.empty()) || is_operator(node, "MatMul"))
      return;
    std::string name = layer.bias < 0 ? node.output(0) + "_bias" : node.input(layer.bias);
    auto count = static_cast<size_t>(layer.channels);
    std::vector<float> bias(count, 0);
    if (layer.bias >= 0)
      for (size_t c = 0; c < count; ++c) bias[c] = original_.constant(name)->data<float>()[c];
    for (size_t c = 0; c < planned.correction.size(); ++c) bias[c] += planned.correction[c];
    auto floats = Literal::of(DType::F32, {layer.channels}, bias);
    auto scales = std::make_shared<Literal>(DType::F32, floats->dims());
    auto integers = std::make_shared<Literal>(DType::I32, floats->dims());
    bool fits = true;
    for (size_t c = 0; c < count; ++c) {
      auto weight_scales = planned.weight->scales->data<float>();
      float scale = x.scale * weight_scales[weight_scales.size() == 1 ? 0 : c];
      double steps = std::nearbyint(static_cast<double>(bias[c]) / scale);
      constexpr double kMax = 1 << 30; // leaves room for the products
      fits &= scale > 0 && std::fabs(steps) <= kMax;
      scales->mutable_data<float>()[c] = scale;
      integers->mutable_data<int32_t>()[c] = fits ? static_cast<int32_t>(steps) : 0;
    }
    while (node.input_size() <= 2) node.add_input("");
    if (!fits) {
      node.set_input(2, edited_.add_constant(name + "_corrected", floats));
      return;
    }
    std::string narrow = edited_.add_constant(name + "_quantized", integers);
    std::string scale = edited_.add_constant(name + "_scale", scales);
    auto zeros = std::make_shared<Literal>(DType::I32, floats->dims());
    std::string zero = edited_.add_constant(name + "_zero_point", zeros);
    std::string back = edited_.fresh_name(name + "_dequantized");
    add_node("DequantizeLinear", {narrow, scale, zero}, back, DType::I32, 0);
    node.set_input(2, back);
  }

  // The correction of a product that has no bias of its own.
  void add_sum(const LayerChoice& planned) {
    std::string result = nodes_.back().output(0), product = edited_.fresh_name(result + "_product");
    nodes_.back().set_output(0, product);
    std::string sum = edited_.add_constant(
        result + "_correction", Literal::of(DType::F32, {planned.layer.channels}, planned.correction));
    nodes_.push_back(make_node("Add", {product, sum}, {result}, edited_.fresh_name(result + "_corrected")));
  }

  const Model& original_;
  const LayerChoices& plan_;
  Model edited_;
  std::vector<wire::NodeProto> nodes_;
  std::map<int, const LayerChoice*> layers_; // by node
  std::map<std::string, std::map<Precision, Grid>> wanted_;
  std::set<int> moved_; // nodes that move quantised values
  std::map<Key, std::string> dequantized_;
  std::map<std::pair<std::string, int>, std::string> weights_; // by name and axis
};

} // namespace

Model quantized_model(const Model& model, const LayerChoices& plan) {
  return Writer(model, plan).run();
}

} // namespace firn::quantize
