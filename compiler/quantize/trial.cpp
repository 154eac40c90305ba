// Building and running of the trial.
#include "compiler/quantize/trial.h"

#include <cmath>

namespace firn::quantize {
namespace {

constexpr char kGrids[] = "firn_trial_grids", kSwitches[] = "firn_trial_switches",
               kCorrections[] = "firn_trial_corrections";
constexpr int kGridParts = 4; // scale, zero point, lowest, highest

std::string output_name(const char* what, size_t layer) {
  return std::string("firn_trial_") + what + "_" + std::to_string(layer);
}

void add_value(google::protobuf::RepeatedPtrField<wire::ValueInfoProto>& values, const std::string& name,
               DType dtype, const std::vector<int64_t>* dims) {
  wire::ValueInfoProto* value = values.Add();
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::dtype_to_wire(dtype));
  if (!dims) return;
  for (int64_t dim : *dims) type->mutable_shape()->add_dim()->set_dim_value(dim);
}

// Nodes that are added one after the other, each under the name of its output.
class Builder {
public:
  Builder(Model& model, std::vector<wire::NodeProto>& nodes) : model_(model), nodes_(nodes) {}
  std::string add(const std::string& op, const std::vector<std::string>& inputs, std::string output = "") {
    if (output.empty()) output = model_.fresh_name("firn_trial_" + op);
    nodes_.push_back(make_node(op, inputs, {output}, output));
    return output;
  }
  wire::NodeProto& last() { return nodes_.back(); }
  std::string ints(const std::vector<int64_t>& values) {
    return model_.add_constant("firn_trial_ints", Literal::of_i64(values));
  }
  // Elements [begin, end) of a vector.
  std::string slice(const std::string& vector, int64_t begin, int64_t end) {
    return add("Slice", {vector, ints({begin}), ints({end}), ints({0})});
  }
  // The mean over the axes, which go.
  std::string mean(const std::string& value, const std::vector<int64_t>& axes, const std::string& output) {
    constexpr int kAxesAreInput = 18;
    if (model_.opset() >= kAxesAreInput) {
      add("ReduceMean", {value, ints(axes)}, output);
    } else {
      add("ReduceMean", {value}, output);
      auto* attribute = last().add_attribute();
      attribute->set_name("axes");
      attribute->set_type(7); // INTS
      for (int64_t axis : axes) attribute->add_ints(axis);
    }
    add_int_attribute(last(), "keepdims", 0);
    return output;
  }

private:
  Model& model_;
  std::vector<wire::NodeProto>& nodes_;
};

LiteralRef floats(const std::vector<float>& values) {
  return Literal::of(DType::F32, {static_cast<int64_t>(values.size())}, values);
}

} // namespace

double LocalError::relative() const {
  return squared > 0 ? std::sqrt(squared_error / squared) : squared_error > 0 ? INFINITY : 0;
}

// x as DequantizeLinear gives it back from QuantizeLinear, on a grid that comes with the run.
std::string Trial::fake_quantized(Model& model, size_t layer, const std::string& tensor,
                                  std::vector<wire::NodeProto>& nodes) {
  Builder build(model, nodes);
  auto at = static_cast<int64_t>(slots_.size()) * kGridParts;
  slots_.push_back({layer, tensor});
  std::string parts[kGridParts];
  for (int i = 0; i < kGridParts; ++i) parts[i] = build.slice(kGrids, at + i, at + i + 1);
  std::string rounded =
      build.add("Add", {build.add("Round", {build.add("Div", {tensor, parts[0]})}), parts[1]});
  std::string bounded = build.add("Min", {build.add("Max", {rounded, parts[2]}), parts[3]});
  return build.add("Mul", {build.add("Sub", {bounded, parts[1]}), parts[0]});
}

// Adds the correction and the outputs that LocalError has. Returns the corrected value.
std::string Trial::measured(Model& model, const LayerChoice& planned, size_t number,
                            const std::string& quantized, const std::string& exact,
                            std::vector<wire::NodeProto>& nodes) {
  Builder build(model, nodes);
  const Layer& layer = planned.layer;
  std::string corrected = quantized;
  const bool by_channel = layer.channels > 0;
  std::vector<int64_t> others{0}; // axes that are no channels
  if (by_channel) {
    std::vector<int64_t> shape{layer.channels};
    if (layer.channel_axis == 1) {
      size_t rank = model.constant(operand(model, layer, layer.weight))->dims().size();
      for (size_t i = 2; i < rank; ++i) shape.push_back(1), others.push_back(static_cast<int64_t>(i));
    }
    int64_t at = correction_offsets_[number];
    std::string part = build.slice(kCorrections, at, at + layer.channels);
    corrected = build.add("Add", {quantized, build.add("Reshape", {part, build.ints(shape)})});
  }
  std::string off = build.add("Sub", {corrected, exact});
  build.add("ReduceSumSquare", {off}, output_name("error", number));
  add_int_attribute(build.last(), "keepdims", 0);
  build.add("ReduceSumSquare", {exact}, output_name("signal", number));
  add_int_attribute(build.last(), "keepdims", 0);
  std::vector<int64_t> scalar, vector{layer.channels};
  add_value(*model.graph().mutable_output(), output_name("error", number), DType::F32, &scalar);
  add_value(*model.graph().mutable_output(), output_name("signal", number), DType::F32, &scalar);
  if (!by_channel) return corrected;
  if (layer.channel_axis != 1) off = build.add("Reshape", {off, build.ints({-1, layer.channels})});
  build.mean(off, others, output_name("mean", number));
  add_value(*model.graph().mutable_output(), output_name("mean", number), DType::F32, &vector);
  return corrected;
}

void Trial::rewrite_layer(Model& model, const LayerChoices& plan, size_t number,
                          std::vector<wire::NodeProto>& nodes) {
  const LayerChoice& planned = plan.layers[number];
  wire::NodeProto exact = model.graph().node(planned.layer.node), quantized = exact;
  std::string result = exact.output(0);
  for (int input : planned.layer.activations)
    quantized.set_input(input, fake_quantized(model, number, exact.input(input), nodes));
  if (planned.weight)
    quantized.set_input(planned.layer.weight, model.add_constant(exact.input(planned.layer.weight) + "_trial",
                                                                 dequantize_weight(*planned.weight)));
  exact.set_output(0, model.fresh_name(result + "_exact"));
  quantized.set_output(0, model.fresh_name(result + "_quantized"));
  nodes.push_back(exact);
  nodes.push_back(quantized);
  std::string corrected = measured(model, planned, number, quantized.output(0), exact.output(0), nodes);
  Builder build(model, nodes);
  auto at = static_cast<int64_t>(number);
  build.add("Where", {build.slice(kSwitches, at, at + 1), corrected, exact.output(0)}, result);
}

Expected<Trial> Trial::make(const Model& model, const LayerChoices& plan, const Engine& engine,
                            const std::string& path) {
  Trial trial;
  Model edited(model);
  std::map<int, size_t> numbers;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    numbers[plan.layers[i].layer.node] = i;
    trial.correction_offsets_.push_back(trial.corrections_);
    trial.corrections_ += plan.layers[i].layer.channels;
  }
  std::vector<wire::NodeProto> nodes;
  for (int i = 0; i < edited.graph().node_size(); ++i) {
    auto found = numbers.find(i);
    if (found == numbers.end())
      nodes.push_back(edited.graph().node(i));
    else
      trial.rewrite_layer(edited, plan, found->second, nodes);
  }
  wire::GraphProto& graph = edited.graph();
  graph.clear_node();
  for (wire::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  std::vector<int64_t> grids{static_cast<int64_t>(trial.slots_.size()) * kGridParts};
  std::vector<int64_t> switches{static_cast<int64_t>(plan.layers.size())}, corrections{trial.corrections_};
  add_value(*graph.mutable_input(), kGrids, DType::F32, &grids);
  add_value(*graph.mutable_input(), kSwitches, DType::Bool, &switches);
  if (trial.corrections_ > 0) add_value(*graph.mutable_input(), kCorrections, DType::F32, &corrections);
  if (Result written = edited.write(path); !written) return written.error();
  auto executable = engine(path);
  if (!executable) return executable.error();
  trial.executable_ = std::move(*executable);
  return trial;
}

Tensors Trial::values_of(const LayerChoices& plan) const {
  std::vector<float> grids, corrections(static_cast<size_t>(corrections_), 0);
  for (const Slot& slot : slots_) {
    Precision precision = plan.layers[slot.layer].precision;
    const Grid& grid =
        plan.grid_of(slot.tensor, precision == Precision::Wide ? Precision::Wide : Precision::Narrow);
    grids.insert(grids.end(), {grid.scale, static_cast<float>(grid.zero_point),
                               static_cast<float>(grid.lowest), static_cast<float>(grid.highest)});
  }
  std::vector<int64_t> switches;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    switches.push_back(plan.layers[i].precision != Precision::Float);
    std::copy(plan.layers[i].correction.begin(), plan.layers[i].correction.end(),
              corrections.begin() + correction_offsets_[i]);
  }
  Tensors added{{kGrids, floats(grids)},
                {kSwitches, Literal::of(DType::Bool, {static_cast<int64_t>(switches.size())}, switches)}};
  if (corrections_ > 0) added[kCorrections] = floats(corrections);
  return added;
}

void Trial::add_local_errors(const Tensors& outputs, std::vector<LocalError>& errors) const {
  for (size_t i = 0; i < errors.size(); ++i) {
    LocalError& error = errors[i];
    error.squared_error += outputs.at(output_name("error", i))->get_double(0);
    error.squared += outputs.at(output_name("signal", i))->get_double(0);
    auto mean = outputs.find(output_name("mean", i));
    if (mean == outputs.end()) continue;
    auto channels = static_cast<size_t>(mean->second->num_elements());
    error.means.resize(channels);
    error.squared_means.resize(channels);
    for (size_t c = 0; c < channels; ++c) {
      double value = mean->second->get_double(static_cast<int64_t>(c));
      error.means[c] += value;
      error.squared_means[c] += value * value;
    }
  }
}

Result Trial::run(const std::vector<Setting>& settings, const Executable::Take& take,
                  std::vector<LocalError>* local) {
  std::vector<Run> runs;
  for (const Setting& setting : settings) runs.push_back({setting.sample, values_of(*setting.plan)});
  return executable_->run(runs, [&](size_t number, Tensors outputs) {
    if (local) add_local_errors(outputs, *local);
    return take(number, std::move(outputs));
  });
}

} // namespace firn::quantize
