// The nodes that can take factors of channels, upwards and downwards, and how each does.
#include "compiler/quantize/rescale.h"

#include "compiler/quantize/layers.h"

#include <algorithm>

namespace firn::quantize {
namespace {

constexpr int kFarthest = 16; // nodes between a gate and the mean that it is made of

bool keeps_factors(const wire::NodeProto& node) {
  return is_operator(node, "Relu") || is_operator(node, "LeakyRelu") || is_operator(node, "MaxPool") ||
         is_operator(node, "AveragePool") || is_operator(node, "Identity");
}

// Whether it is the mean over all places of an image.
bool is_mean_of_places(const Model& model, const wire::NodeProto& node) {
  if (is_operator(node, "GlobalAveragePool")) return true;
  if (!is_operator(node, "ReduceMean")) return false;
  std::vector<int64_t> axes;
  if (const auto* attribute = find_attribute(node, "axes"))
    axes.assign(attribute->ints().begin(), attribute->ints().end());
  else if (node.input_size() > 1 && model.constant(node.input(1)))
    axes = model.constant(node.input(1))->to_ints();
  for (int64_t& axis : axes) axis = axis < 0 ? axis + 4 : axis;
  std::sort(axes.begin(), axes.end());
  return axes == std::vector<int64_t>{2, 3};
}

// Whether the value is made of means over places, thus small: the gate of a squeeze-and-excite block.
bool is_gate(const Model& model, std::string value) {
  for (int i = 0; i < kFarthest; ++i) {
    int made = model.producer(value);
    if (made < 0) return false;
    const wire::NodeProto& node = model.graph().node(made);
    if (is_mean_of_places(model, node)) return true;
    bool passes = is_elementwise_of_one(model, node) || is_operator(node, "Conv");
    auto inputs = variable_inputs(model, node);
    // x * sigmoid(x) comes from x.
    if (is_operator(node, "Mul") && inputs.size() == 2) passes = true;
    if (!passes || inputs.empty()) return false;
    value = inputs[0];
  }
  return false;
}

// A vector of the factors, or their inverses, that broadcasts along the channels.
LiteralRef factor_constant(const std::vector<float>& factors, bool inverse, bool is_image) {
  std::vector<int64_t> dims{static_cast<int64_t>(factors.size())};
  if (is_image) dims.insert(dims.end(), {1, 1});
  std::vector<float> values;
  for (float factor : factors) values.push_back(inverse ? 1 / factor : factor);
  return Literal::of(DType::F32, dims, values);
}

// f(element, channel) for every element of a constant, with channels along the axis.
template <class F> LiteralRef mapped(const Literal& from, int axis, const F& f) {
  int64_t inner = 1, count = from.dims()[static_cast<size_t>(axis)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < from.dims().size(); ++i) inner *= from.dims()[i];
  auto to = std::make_shared<Literal>(DType::F32, from.dims());
  for (int64_t i = 0; i < from.num_elements(); ++i)
    to->mutable_data<float>()[static_cast<size_t>(i)] =
        f(from.data<float>()[static_cast<size_t>(i)], i, i / inner % count);
  return to;
}

bool is_f32(const LiteralRef& literal) {
  return literal && literal->dtype() == DType::F32;
}

} // namespace

std::optional<Rescale> Rescale::find(const Model& model, const std::string& value, int axis,
                                     const Channels& channels) {
  constexpr int64_t kRankOfImages = 4;
  if (axis == 1 && channels.rank != kRankOfImages) return std::nullopt;
  Rescale rescale(model, value, channels.size());
  rescale.is_image_ = axis == 1;
  if (!rescale.multiply_readers(value, axis == 1)) return std::nullopt;
  size_t behind = rescale.edits_.size();
  rescale.is_free_ = rescale.divide_maker(value, axis == 1);
  if (!rescale.is_free_) {
    rescale.edits_.resize(behind);
    if (!rescale.stays_in_registers()) return std::nullopt;
  }
  return rescale;
}

bool Rescale::multiply_readers(const std::string& value, bool is_image) {
  const std::vector<int>& all = model_->readers(value);
  if (all.empty() || model_->is_output(value)) return false;
  return std::all_of(all.begin(), all.end(),
                     [&](int reader) { return multiply_reader(value, reader, is_image); });
}

bool Rescale::multiply_reader(const std::string& value, int reader, bool is_image) {
  const wire::NodeProto& node = model_->graph().node(reader);
  if (std::count(node.input().begin(), node.input().end(), value) != 1) return false;
  LiteralRef weight = node.input_size() > 1 ? model_->constant(node.input(1)) : nullptr;
  auto takes = [&](int axis, int64_t groups, bool transposed) {
    auto extent = weight->dims()[static_cast<size_t>(axis)] * (transposed ? 1 : groups);
    if (extent != channels_) return false;
    readers_.push_back({reader, axis, groups, transposed});
    edits_.push_back({Edit::Kind::MultiplyInputs, reader});
    return true;
  };
  const bool is_first = node.input(0) == value && is_f32(weight);
  if (is_operator(node, "Conv"))
    return is_image && is_first && weight->dims().size() == 4 &&
           takes(1, int_attribute(node, "group", 1), false);
  if (is_operator(node, "ConvTranspose"))
    return is_image && is_first && weight->dims().size() == 4 &&
           takes(0, int_attribute(node, "group", 1), true);
  if (is_operator(node, "Gemm"))
    return !is_image && is_first && weight->dims().size() == 2 && int_attribute(node, "transA", 0) == 0 &&
           takes(int_attribute(node, "transB", 0) != 0 ? 1 : 0, 1, false);
  if (is_operator(node, "MatMul"))
    return !is_image && is_first && weight->dims().size() == 2 && takes(0, 1, false);
  if (is_operator(node, "Mul") && is_image) {
    int other = node.input(0) == value ? 1 : 0;
    if (model_->constant(node.input(other)) || !is_gate(*model_, node.input(other))) return false;
    edits_.push_back({Edit::Kind::MultiplyOperand, reader, other});
    return true;
  }
  if (!is_image || node.output_size() != 1) return false;
  if (is_mean_of_places(*model_, node) || keeps_factors(node)) return multiply_readers(node.output(0), true);
  // Behind a mean there is one place, so that the channels are all that is flattened.
  bool is_flat = is_operator(node, "Flatten") && int_attribute(node, "axis", 1) == 1;
  int made = model_->producer(value);
  return is_flat && made >= 0 && is_mean_of_places(*model_, model_->graph().node(made)) &&
         multiply_readers(node.output(0), false);
}

bool Rescale::is_channel_constant(const std::string& name, bool is_image) const {
  LiteralRef literal = model_->constant(name);
  if (!is_f32(literal) || literal->num_elements() != channels_) return false;
  size_t behind = is_image ? 3 : 1; // dims from the channels on
  const auto& dims = literal->dims();
  return dims.size() >= behind && (!is_image || dims.size() <= 4) && dims[dims.size() - behind] == channels_;
}

bool Rescale::divide_maker(const std::string& value, bool is_image) {
  int made = model_->producer(value);
  if (made < 0) return false;
  const wire::NodeProto& node = model_->graph().node(made);
  if (node.output_size() != 1) return false;
  if (is_operator(node, "Mul")) return divide_product(made, is_image);
  if (is_operator(node, "Add")) return divide_sum(made, is_image);
  bool mixes_channels = !is_image && (is_operator(node, "MaxPool") || is_operator(node, "AveragePool"));
  if (keeps_factors(node) && !mixes_channels)
    return model_->is_only_for(node.input(0), made) && divide_maker(node.input(0), is_image);
  if (is_operator(node, "LayerNormalization") && !is_image) {
    for (int i = 1; i < node.input_size(); ++i) {
      if (!is_channel_constant(node.input(i), false)) return false;
      edits_.push_back({Edit::Kind::DivideConstant, made, i});
    }
    return node.input_size() > 1;
  }
  return divide_layer(made, is_image);
}

bool Rescale::divide_layer(int number, bool is_image) {
  const wire::NodeProto& node = model_->graph().node(number);
  bool convolves = is_operator(node, "Conv"), multiplies = is_operator(node, "MatMul"),
       is_gemm = is_operator(node, "Gemm");
  if (convolves != is_image || (!convolves && !multiplies && !is_gemm) || node.input_size() < 2) return false;
  LiteralRef weight = model_->constant(node.input(1));
  if (!is_f32(weight) || weight->dims().size() < 2) return false;
  bool has_bias = !multiplies && node.input_size() > 2 && !node.input(2).empty();
  LiteralRef bias = has_bias ? model_->constant(node.input(2)) : nullptr;
  if (has_bias && (!is_f32(bias) || bias->dims().size() != 1 || bias->num_elements() != channels_))
    return false;
  size_t axis = convolves || int_attribute(node, "transB", 0) != 0 ? 0 : weight->dims().size() - 1;
  if (weight->dims()[axis] != channels_) return false;
  edits_.push_back({Edit::Kind::DivideOutputs, number});
  if (has_bias) edits_.push_back({Edit::Kind::DivideConstant, number, 2});
  return true;
}

bool Rescale::divide_product(int number, bool is_image) {
  const wire::NodeProto& node = model_->graph().node(number);
  for (int i = 0; i < 2; ++i) {
    const std::string &one = node.input(i), &other = node.input(1 - i);
    if (is_channel_constant(one, is_image))
      return edits_.push_back({Edit::Kind::DivideConstant, number, i}), true;
    LiteralRef literal = model_->constant(one);
    if (literal && literal->num_elements() == 1)
      return model_->is_only_for(other, number) && divide_maker(other, is_image);
    if (!literal && is_image && is_gate(*model_, one) && !is_gate(*model_, other))
      return edits_.push_back({Edit::Kind::DivideOperand, number, i}), true;
  }
  return false;
}

bool Rescale::divide_sum(int number, bool is_image) {
  const wire::NodeProto& node = model_->graph().node(number);
  for (int i = 0; i < 2; ++i) {
    if (!is_channel_constant(node.input(i), is_image)) continue;
    edits_.push_back({Edit::Kind::DivideConstant, number, i});
    return model_->is_only_for(node.input(1 - i), number) && divide_maker(node.input(1 - i), is_image);
  }
  return false;
}

// Whether functions of its elements lie between the value and the layer that makes it, so that one product
// more costs no pass over memory.
bool Rescale::stays_in_registers() const {
  std::string value = value_;
  for (int i = 0; i < kFarthest; ++i) {
    int made = model_->producer(value);
    if (made < 0) return false;
    const wire::NodeProto& node = model_->graph().node(made);
    if (is_operator(node, "Conv") || is_operator(node, "Gemm") || is_operator(node, "MatMul")) return true;
    auto inputs = variable_inputs(*model_, node);
    bool is_self_gated = is_operator(node, "Mul") && inputs.size() == 2; // x * sigmoid(x) and its kin
    if (!is_elementwise_of_one(*model_, node) && !is_self_gated) return false;
    value = inputs[0];
  }
  return false;
}

void Rescale::edit(Model& model, const Edit& edit, const std::vector<float>& factors,
                   std::map<int, std::vector<wire::NodeProto>>& before) const {
  wire::NodeProto& node = *model.graph().mutable_node(edit.node);
  const std::string name = node.input(edit.input);
  LiteralRef literal = model.constant(name);
  auto replace = [&](LiteralRef by) {
    node.set_input(edit.input, model.add_constant(name + "_scaled", std::move(by)));
  };
  auto factor = [&](int64_t channel) { return factors[static_cast<size_t>(channel)]; };
  switch (edit.kind) {
  case Edit::Kind::MultiplyInputs: {
    auto found = std::find_if(readers_.begin(), readers_.end(),
                              [&](const Reader& reader) { return reader.node == edit.node; });
    int64_t group_outputs = found->transposed ? 1 : literal->dims()[0] / found->groups, row = 1;
    for (size_t i = 1; i < literal->dims().size(); ++i) row *= literal->dims()[i];
    bool grouped = !found->transposed && found->axis == 1 && literal->dims().size() == 4;
    replace(mapped(*literal, found->axis, [&](float value, int64_t at, int64_t channel) {
      int64_t group = grouped ? at / row / group_outputs : 0;
      return value * factor(group * literal->dims()[1] * grouped + channel);
    }));
    return;
  }
  case Edit::Kind::DivideOutputs: {
    bool first = is_operator(node, "Conv") || int_attribute(node, "transB", 0) != 0;
    int axis = first ? 0 : static_cast<int>(literal->dims().size()) - 1;
    return replace(mapped(*literal, axis,
                          [&](float value, int64_t, int64_t channel) { return value / factor(channel); }));
  }
  case Edit::Kind::DivideConstant: {
    auto to = std::make_shared<Literal>(DType::F32, literal->dims());
    for (int64_t c = 0; c < channels_; ++c)
      to->mutable_data<float>()[static_cast<size_t>(c)] =
          literal->data<float>()[static_cast<size_t>(c)] / factor(c);
    return replace(to);
  }
  case Edit::Kind::MultiplyOperand:
  case Edit::Kind::DivideOperand: {
    bool inverse = edit.kind == Edit::Kind::DivideOperand;
    std::string scaled = model.fresh_name(name + "_scaled");
    std::string by = model.add_constant(name + "_factors", factor_constant(factors, inverse, true));
    before[edit.node].push_back(make_node("Mul", {name, by}, {scaled}, scaled));
    node.set_input(edit.input, scaled);
    return;
  }
  }
}

void Rescale::apply(Model& model, const std::vector<float>& factors) const {
  std::map<int, std::vector<wire::NodeProto>> before;
  for (const Edit& each : edits_) edit(model, each, factors, before);
  if (!is_free_) {
    std::string scaled = model.fresh_name(value_ + "_scaled");
    std::string by = model.add_constant(value_ + "_factors", factor_constant(factors, true, is_image_));
    before[model.producer(value_) + 1].push_back(make_node("Mul", {value_, by}, {scaled}, scaled));
    for (int reader : model.readers(value_))
      for (std::string& input : *model.graph().mutable_node(reader)->mutable_input())
        if (input == value_) input = scaled;
  }
  google::protobuf::RepeatedPtrField<wire::NodeProto> nodes;
  for (int i = 0; i < model.graph().node_size(); ++i) {
    for (wire::NodeProto& added : before[i]) *nodes.Add() = std::move(added);
    *nodes.Add() = std::move(*model.graph().mutable_node(i));
  }
  *model.graph().mutable_node() = std::move(nodes);
  model.index();
}

} // namespace firn::quantize
