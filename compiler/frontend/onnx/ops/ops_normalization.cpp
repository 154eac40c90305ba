// Importers of batch, layer, instance, group and other normalisations.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/convolution_operators.h"
#include "compiler/frontend/onnx/ops/early_operator.h"
#include "compiler/graph/composites.h"
#include "compiler/training/training_forms.h"

namespace firn::onnx {

namespace {

double epsilon_attribute(NodeContext& node) {
  return node.float_attribute("epsilon", 1e-5f);
}

// The dtype of statistics: f64 for f64 data, else that of the attribute stash_type, or f32 without it.
// Nothing after a failure.
std::optional<DType> stash_dtype(NodeContext& node, DType data) {
  DType stash =
      node.has_attribute("stash_type") ? node.dtype_attribute("stash_type").value_or(DType::F32) : DType::F32;
  if (!node.check(is_float(stash) && bit_width(stash) >= 16,
                  "attribute stash_type is " + std::string(dtype_name(stash)) + ", wants a float type"))
    return std::nullopt;
  return data == DType::F64 ? DType::F64 : stash;
}
// The dtype in which statistics of dtype `stash` are computed.
DType computed_dtype(DType stash) {
  return bit_width(stash) < 32 ? DType::F32 : stash;
}

Value mean_over(NodeContext& node, Value x, const std::vector<int>& dims) {
  if (!x) return {};
  return node.binary(Opcode::Divide, node.reduce(Opcode::Add, x, dims, true), node.count(x, dims, x.dtype()));
}

// Inputs 1 to 4, which are scale, bias, mean and variance, in dtype `work`: vectors [C] shaped for x or,
// before opset 9 with spatial = 0, [C,D1,...].
std::optional<Values> batch_norm_parameters(NodeContext& node, Value x, bool spatial, DType work) {
  Values parameters;
  for (int i = 1; i < 5; ++i) {
    Value parameter = spatial ? input_with_extents(node, i, {x.type().dims[1]}) : node.input(i);
    parameter = node.convert(parameter, work);
    if (!parameter) return std::nullopt;
    parameters.push_back(spatial ? per_channel(node, parameter, x.rank()) : parameter);
  }
  return parameters;
}

struct AffineNorm {
  Value factor, offset;
};

// scale / sqrt(variance + epsilon), and bias - mean * that: the normalisation as one multiplication and one
// addition.
AffineNorm affine_norm(NodeContext& node, Value scale, Value bias, Value mean, Value variance,
                       double epsilon) {
  if (!variance) return {};
  Value stabilised = node.binary(Opcode::Add, variance, node.scalar(variance.dtype(), epsilon));
  Value factor = node.binary(Opcode::Divide, scale, node.unary(Opcode::Sqrt, stabilised));
  return {factor, node.binary(Opcode::Subtract, bias, multiply(node, mean, factor))};
}

// Training mode: x, in the dtype that is computed in, by the statistics of its batch.
void normalize_by_batch(NodeContext& node, Value x, const Values& parameters, double epsilon,
                        double momentum) {
  GraphBuilder builder = node.builder();
  Instruction* norm = make_batch_norm(builder, x, parameters[0], parameters[1], epsilon);
  Value input = node.input(0);
  node.set_output(0, node.reshape(node.convert(norm->result(), input.dtype()), input.type().dims));
  // Running statistics: momentum * old + (1 - momentum) * those of the batch.
  for (int i = 1; i < 3; ++i) {
    if (!node.has_output(i)) continue;
    Value old = multiply(node, parameters[static_cast<size_t>(i) + 1], node.scalar(x.dtype(), momentum));
    Value batch = multiply(node, norm->result(i), node.scalar(x.dtype(), 1 - momentum));
    Value running = node.binary(Opcode::Add, old, batch), from = node.input(i + 2);
    node.set_output(i, node.convert(node.reshape(running, from.type().dims), from.dtype()));
  }
}

// A training step decides itself when a norm goes by the statistics of its batch: elsewhere the norm goes by
// the running ones, which stay as they are, whatever the node's mode is.
void import_trainable_norm(NodeContext& node, Value x, double epsilon, double momentum) {
  Values operands{x};
  for (int i = 1; i < 5; ++i) {
    Value given = node.convert(input_with_extents(node, i, {x.type().dims[1]}), x.dtype());
    if (!given) return;
    operands.push_back(given);
  }
  GraphBuilder builder = node.builder();
  Value y = training::make_running_norm(builder, operands, epsilon, momentum), input = node.input(0);
  node.set_output(0, node.reshape(node.convert(y, input.dtype()), input.type().dims));
  for (int i = 1; i < 3; ++i)
    if (node.has_output(i)) node.set_output(i, node.input(i + 2));
}

void import_batch_normalization(NodeContext& node) {
  if (!node.check_rank_at_least(0, 1)) return;
  Value x = node.input(0);
  if (x.rank() == 1) x = node.unsqueeze(x, 1); // a batch of one channel
  bool training = node.opset() >= 14 && node.flag_attribute("training_mode", false);
  bool spatial = node.opset() >= 9 || node.flag_attribute("spatial", true);
  if (!training && node.num_outputs() > 1) {
    node.fail_unsupported("outputs beyond the first exist only in training, " +
                          std::to_string(node.num_outputs()) + " are wanted");
    return;
  }
  double epsilon = epsilon_attribute(node), momentum = node.float_attribute("momentum", 0.9f);
  DType work = bit_width(x.dtype()) < 32 ? DType::F32 : x.dtype();
  if (node.state().options.keep_initializers && spatial)
    return import_trainable_norm(node, node.convert(x, work), epsilon, momentum);
  auto parameters = batch_norm_parameters(node, x, spatial, work);
  if (!parameters || node.failed()) return;
  Values& p = *parameters;
  Value wide = node.convert(x, work);
  if (training) return normalize_by_batch(node, wide, p, epsilon, momentum);
  if (node.state().options.keep_initializers) // statistics are measured, not trained
    for (Value* statistic : {&p[2], &p[3]}) *statistic = node.unary(Opcode::StopGradient, *statistic);
  AffineNorm norm = affine_norm(node, p[0], p[1], p[2], p[3], epsilon);
  Value y = node.binary(Opcode::Add, multiply(node, wide, norm.factor), norm.offset);
  node.set_output(0, node.reshape(node.convert(y, x.dtype()), node.input(0).type().dims));
}

void import_instance_normalization(NodeContext& node) {
  double epsilon = epsilon_attribute(node);
  if (!node.check_rank_at_least(0, 3)) return;
  const Dim channels = node.input(0).type().dims[1];
  Value scale = input_with_extents(node, 1, {channels}), bias = input_with_extents(node, 2, {channels});
  if (node.failed()) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, make_instance_norm(builder, node.input(0), scale, bias, epsilon));
}

// Before opset 21 scale and bias hold one element per group.
void import_group_normalization(NodeContext& node) {
  Value x = node.input(0);
  int64_t groups = node.required_int("num_groups");
  double epsilon = epsilon_attribute(node);
  if (node.failed() || !node.check_rank_at_least(0, 2)) return;
  auto channels = node.static_dim(0, 1);
  if (!channels || !node.check(groups > 0 && *channels % groups == 0,
                               "attribute num_groups is " + std::to_string(groups) +
                                   ", wants a divisor of the " + std::to_string(*channels) + " channels"))
    return;
  auto per_channel_of = [&](int input) {
    if (node.opset() >= 21) return input_with_extents(node, input, {Dim(*channels)});
    Value column = node.reshape_to(input_with_extents(node, input, {Dim(groups)}), {groups, 1});
    return node.reshape_to(node.broadcast_to(column, {Dim(groups), Dim(*channels / groups)}), {*channels});
  };
  Value scale = per_channel_of(1), bias = per_channel_of(2);
  auto stash = stash_dtype(node, x.dtype());
  if (!stash || node.failed()) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, make_group_norm(builder, x, scale, bias, groups, epsilon, computed_dtype(*stash)));
}

void import_layer_normalization(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", -1), x.rank());
  auto stash = stash_dtype(node, x.dtype());
  double epsilon = epsilon_attribute(node);
  Value scale = input_with_extents(node, 1, x.type().dims, /*stretches=*/true),
        bias = input_with_extents(node, 2, x.type().dims, /*stretches=*/true);
  if (!axis || !stash || node.failed()) return;
  bool statistics = node.has_output(1) || node.has_output(2);
  GraphBuilder builder = node.builder();
  Instruction* norm =
      make_layer_norm(builder, x, scale, bias, *axis, epsilon, computed_dtype(*stash), statistics);
  for (int i = 0; i < 3; ++i)
    if (node.has_output(i))
      node.set_output(i, i == 0 ? norm->result() : node.convert(norm->result(i), *stash));
}

void import_early_layer_normalization(NodeContext& node) {
  warn_early(node, 17);
  import_layer_normalization(node);
}

void import_rms_normalization(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", -1), x.rank());
  auto stash = stash_dtype(node, x.dtype());
  double epsilon = epsilon_attribute(node);
  Value scale = input_with_extents(node, 1, x.type().dims, /*stretches=*/true);
  if (!axis || !stash || node.failed()) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, make_rms_norm(builder, x, scale, *axis, epsilon, computed_dtype(*stash)));
}

// (x - mean) / (deviation + 1e-9) over the axes, with the epsilon of ONNX's function; x - mean alone unless
// `scales`.
void normalize_over(NodeContext& node, const Ints& axes, bool scales) {
  Value x = node.input(0);
  auto dims = node.axes(axes, x.rank());
  if (!dims) return;
  Value centered = node.binary(Opcode::Subtract, x, mean_over(node, x, *dims));
  if (!scales) return node.set_output(0, centered);
  Value deviation = node.unary(Opcode::Sqrt, mean_over(node, multiply(node, centered, centered), *dims));
  if (!deviation) return;
  Value divisor = node.binary(Opcode::Add, deviation, node.scalar(x.dtype(), 1e-9));
  node.set_output(0, node.binary(Opcode::Divide, centered, divisor));
}

void import_mean_variance_normalization(NodeContext& node) {
  normalize_over(node, node.ints_attribute("axes", {0, 2, 3}), /*scales=*/true);
}

// The form before opset 9, which takes images and has other attributes.
void import_early_mean_variance_normalization(NodeContext& node) {
  warn_early(node, 9);
  if (!node.check_rank(0, 4)) return;
  bool across = node.flag_attribute("across_channels", false);
  normalize_over(node, across ? Ints{0, 1, 2, 3} : Ints{0, 2, 3},
                 node.flag_attribute("normalize_variance", true));
}

// x divided by its p-norm along the axis; 0 where the norm is 0.
void import_lp_normalization(NodeContext& node) {
  Value x = node.input(0);
  auto axis = node.axis(node.int_attribute("axis", -1), x.rank());
  int64_t p = node.int_attribute("p", 2);
  if (!axis || !node.check(p == 1 || p == 2, "attribute p is " + std::to_string(p) + ", wants 1 or 2"))
    return;
  Value powers = p == 1 ? node.unary(Opcode::Abs, x) : multiply(node, x, x);
  Value norm = node.reduce(Opcode::Add, powers, {*axis}, true);
  if (p == 2) norm = node.unary(Opcode::Sqrt, norm);
  if (!norm) return;
  Value zero = node.scalar(x.dtype(), 0);
  Value quotient = node.binary(Opcode::Divide, x, norm);
  node.set_output(0, node.select(node.compare("eq", norm, zero), zero, quotient));
}

const OperatorRow kRows[] = {
    {"", "BatchNormalization", 1, kLatest, 5, 5, 1, 5, "float", import_batch_normalization,
     "normalisation by given statistics per channel"},
    {"", "GroupNormalization", 18, kLatest, 3, 3, 1, 1, "T=float T", import_group_normalization,
     "normalisation over groups of channels"},
    {"", "InstanceNormalization", 1, kLatest, 3, 3, 1, 1, "T=float T", import_instance_normalization,
     "normalisation over the spatial dims of each channel"},
    {"", "LayerNormalization", 1, 16, 2, 3, 1, 3, "float", import_early_layer_normalization,
     "the same before ONNX has it; with a warning"},
    {"", "LayerNormalization", 17, kLatest, 2, 3, 1, 3, "float", import_layer_normalization,
     "normalisation over the dims from an axis on"},
    {"", "LpNormalization", 1, kLatest, 1, 1, 1, 1, "float", import_lp_normalization,
     "division by the 1- or 2-norm along an axis", NarrowFloats::Widened},
    {"", "MeanVarianceNormalization", 1, 8, 1, 1, 1, 1, "float", import_early_mean_variance_normalization,
     "the same of images before ONNX has it; with a warning", NarrowFloats::Widened},
    {"", "MeanVarianceNormalization", 9, kLatest, 1, 1, 1, 1, "float", import_mean_variance_normalization,
     "zero mean and unit variance over axes", NarrowFloats::Widened},
    {"", "RMSNormalization", 23, kLatest, 2, 2, 1, 1, "float", import_rms_normalization,
     "division by the root mean square over the dims from an axis on"},
};

} // namespace

std::span<const OperatorRow> normalization_operators() {
  return kRows;
}

} // namespace firn::onnx
