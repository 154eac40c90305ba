// Importers of activation functions and of softmax and its kin. Functions for which targets have kernels
// become composites.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/early_operator.h"
#include "compiler/graph/composites.h"

#include <limits>

namespace firn::onnx {

namespace {

template <Opcode opcode> void import_unary(NodeContext& node) {
  node.set_output(0, node.unary(opcode, node.input(0)));
}

template <Value (*make)(GraphBuilder&, Value)> void import_composite(NodeContext& node) {
  GraphBuilder builder = node.builder();
  node.set_output(0, make(builder, node.input(0)));
}

Value is_negative(NodeContext& node, Value x) {
  return x ? node.compare("lt", x, node.scalar(x.dtype(), 0)) : x;
}

void import_relu(NodeContext& node) {
  Value x = node.input(0);
  node.set_output(0, node.binary(Opcode::Maximum, x, node.scalar(x.dtype(), 0)));
}

void import_leaky_relu(NodeContext& node) {
  Value x = node.input(0);
  Value scaled = times(node, x, node.float_attribute("alpha", 0.01f));
  node.set_output(0, node.select(is_negative(node, x), scaled, x));
}

// Before opset 7 a slope of more than one element belongs to dim 1; then numpy's rule holds.
void import_prelu(NodeContext& node) {
  Value x = node.input(0), slope = node.input(1);
  if (node.opset() < 7 && slope.rank() == 1 && x.rank() >= 2 && slope.type().dims[0] != Dim(1)) {
    std::vector<Dim> dims(static_cast<size_t>(x.rank() - 1), Dim(1));
    dims[0] = slope.type().dims[0];
    slope = node.reshape(slope, std::move(dims));
  }
  if (!slope) return;
  node.set_output(0, node.select(is_negative(node, x), node.binary(Opcode::Multiply, x, slope), x));
}

// alpha * (exp(x) - 1) where x < 0.
Value elu(NodeContext& node, Value x, double alpha) {
  Value curve = node.unary(Opcode::ExponentialMinusOne, x);
  if (alpha != 1) curve = times(node, curve, alpha);
  return node.select(is_negative(node, x), curve, x);
}

void import_elu(NodeContext& node) {
  node.set_output(0, elu(node, node.input(0), node.float_attribute("alpha", 1)));
}

void import_selu(NodeContext& node) {
  // The defaults before opset 6 were rounded to four digits.
  bool rounded = node.opset() < 6;
  double alpha = node.float_attribute("alpha", rounded ? 1.6732f : 1.67326319217681884765625);
  double gamma = node.float_attribute("gamma", rounded ? 1.0507f : 1.05070102214813232421875);
  Value curve = elu(node, node.input(0), alpha);
  if (curve) node.set_output(0, times(node, curve, gamma));
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
void import_celu(NodeContext& node) {
  Value x = node.input(0);
  double alpha = node.float_attribute("alpha", 1);
  if (!node.check(alpha != 0, "attribute alpha is 0, wants another value")) return;
  Value zero = node.scalar(x.dtype(), 0);
  Value scaled = node.binary(Opcode::Divide, x, node.scalar(x.dtype(), alpha));
  Value curve = times(node, node.unary(Opcode::ExponentialMinusOne, scaled), alpha);
  Value below = node.binary(Opcode::Minimum, curve, zero);
  node.set_output(0, node.binary(Opcode::Add, node.binary(Opcode::Maximum, x, zero), below));
}

void import_thresholded_relu(NodeContext& node) {
  Value x = node.input(0);
  Value above = node.compare("gt", x, node.scalar(x.dtype(), node.float_attribute("alpha", 1)));
  node.set_output(0, node.select(above, x, node.scalar(x.dtype(), 0)));
}

void import_early_thresholded_relu(NodeContext& node) {
  warn_early(node, 10);
  import_thresholded_relu(node);
}

void import_hard_sigmoid(NodeContext& node) {
  Value x = node.input(0);
  double alpha = node.float_attribute("alpha", 0.2f), beta = node.float_attribute("beta", 0.5);
  Value line = plus(node, times(node, x, alpha), beta);
  node.set_output(0, node.op(Opcode::Clamp, {node.splat_like(x, 0), line, node.splat_like(x, 1)}));
}

void import_softsign(NodeContext& node) {
  Value x = node.input(0);
  node.set_output(0, node.binary(Opcode::Divide, x, plus(node, node.unary(Opcode::Abs, x), 1)));
}

void import_gelu(NodeContext& node) {
  std::string approximate = node.choice_attribute("approximate", "none", {"none", "tanh"});
  if (node.failed()) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, make_gelu(builder, node.input(0), approximate == "tanh"));
}

Value swish(NodeContext& node, Value x, double alpha) {
  if (node.failed()) return {};
  GraphBuilder builder = node.builder();
  if (alpha == 1) return make_silu(builder, x);
  return multiply(node, x, node.unary(Opcode::Logistic, times(node, x, alpha)));
}

void import_swish(NodeContext& node) {
  node.set_output(0, swish(node, node.input(0), node.float_attribute("alpha", 1)));
}

void import_swiglu(NodeContext& node) {
  Value gate = node.input(0), x = input_with_extents(node, 1, gate.type().dims);
  node.set_output(0, multiply(node, swish(node, gate, node.float_attribute("alpha", 1)), x));
}

void import_clip(NodeContext& node) {
  Value x = node.input(0), low, high;
  if (node.opset() < 11) {
    // From opset 6 on the default bound is the largest float, which changes infinities only.
    constexpr double largest = std::numeric_limits<float>::max();
    bool always = node.opset() >= 6;
    if (always || node.has_attribute("min"))
      low = node.scalar(x.dtype(), node.float_attribute("min", -largest));
    if (always || node.has_attribute("max"))
      high = node.scalar(x.dtype(), node.float_attribute("max", largest));
  } else {
    for (int i = 1; i < 3; ++i)
      if (node.has_input(i) && !node.check_scalar(i)) return;
    if (node.has_input(1)) low = node.reshape_to(node.input(1), {});
    if (node.has_input(2)) high = node.reshape_to(node.input(2), {});
  }
  if (node.failed()) return;
  if (low && high) {
    const std::vector<Dim>& dims = x.type().dims;
    x = node.op(Opcode::Clamp, {node.broadcast_to(low, dims), x, node.broadcast_to(high, dims)});
  } else if (low) {
    x = node.binary(Opcode::Maximum, x, low);
  } else if (high) {
    x = node.binary(Opcode::Minimum, x, high);
  }
  node.set_output(0, x);
}

// x + bias below -lambd, x - bias above lambd, 0 between. Integers are compared with lambd as floats.
void import_shrink(NodeContext& node) {
  Value x = node.input(0);
  DType dtype = x.dtype();
  double lambda = node.float_attribute("lambd", 0.5), bias = node.float_attribute("bias", 0);
  Value wide = is_float(dtype) ? x : node.convert(x, DType::F64);
  if (!wide) return;
  Value zero = node.scalar(wide.dtype(), 0);
  Value high =
      node.select(node.compare("gt", wide, node.scalar(wide.dtype(), lambda)), plus(node, wide, -bias), zero);
  Value low = node.compare("lt", wide, node.scalar(wide.dtype(), -lambda));
  node.set_output(0, node.convert(node.select(low, plus(node, wide, bias), high), dtype));
}

// The tensor and dim that softmax and its kin work on. Before opset 13 dims from `axis` on count as one.
struct SoftmaxView {
  Value x;
  int dim = 0;
};

SoftmaxView softmax_view(NodeContext& node) {
  Value x = node.input(0);
  bool coerced = node.opset() < 13;
  int64_t given = node.int_attribute("axis", coerced ? 1 : -1);
  // A vector may be given with the default axis of matrices.
  if (coerced && x.rank() == 1 && !node.has_attribute("axis")) given = 0;
  auto axis = node.axis(given, x.rank());
  if (!axis) return {};
  if (!coerced || *axis == x.rank() - 1) return {x, *axis};
  const std::vector<Dim>& dims = x.type().dims;
  auto outer = node.product({dims.begin(), dims.begin() + *axis}),
       inner = node.product({dims.begin() + *axis, dims.end()});
  if (!outer || !inner) return {};
  return {node.reshape(x, {*outer, *inner}), 1};
}

template <Value (*make)(GraphBuilder&, Value, int)> void import_softmax(NodeContext& node) {
  SoftmaxView view = softmax_view(node);
  if (!view.x) return;
  GraphBuilder builder = node.builder();
  node.set_output(0, node.reshape(make(builder, view.x, view.dim), node.input(0).type().dims));
}

// 1 at the first largest element along the dim, 0 elsewhere.
void import_hardmax(NodeContext& node) {
  SoftmaxView view = softmax_view(node);
  if (!view.x) return;
  const std::vector<Dim>& dims = view.x.type().dims;
  if (dims[static_cast<size_t>(view.dim)] == Dim(0)) return node.set_output(0, node.input(0));
  Attributes attributes{{"dim", int64_t{view.dim}}, {"kind", Word{"max"}}, {"select_last", false}};
  Value largest = node.unsqueeze(node.op(Opcode::ArgReduce, {view.x}, attributes), view.dim);
  Value hot = node.compare("eq", node.iota(DType::I64, dims, view.dim), largest);
  node.set_output(0, node.reshape(node.convert(hot, view.x.dtype()), node.input(0).type().dims));
}

const OperatorRow kRows[] = {
    {"", "Celu", 12, kLatest, 1, 1, 1, 1, "float", import_celu,
     "continuously differentiable exponential unit", NarrowFloats::Widened},
    {"", "Clip", 1, kLatest, 1, 3, 1, 1, "T=num T", import_clip, "bounds elements from either side"},
    {"", "Elu", 1, kLatest, 1, 1, 1, 1, "float", import_elu, "exponential linear unit",
     NarrowFloats::Widened},
    {"", "Gelu", 20, kLatest, 1, 1, 1, 1, "float", import_gelu,
     "Gaussian error linear unit, exact or by tanh", NarrowFloats::Widened},
    {"", "HardSigmoid", 1, kLatest, 1, 1, 1, 1, "float", import_hard_sigmoid, "piecewise linear sigmoid",
     NarrowFloats::Widened},
    {"", "HardSwish", 14, kLatest, 1, 1, 1, 1, "float", import_composite<make_hard_swish>,
     "x * hard_sigmoid(x)", NarrowFloats::Widened},
    {"", "Hardmax", 1, kLatest, 1, 1, 1, 1, "float", import_hardmax,
     "1 at the first largest element, 0 elsewhere"},
    {"", "LeakyRelu", 1, kLatest, 1, 1, 1, 1, "float", import_leaky_relu, "rectifier with a slope below 0"},
    {"", "LogSoftmax", 1, kLatest, 1, 1, 1, 1, "float", import_softmax<make_log_softmax>,
     "logarithm of softmax"},
    {"", "Mish", 18, kLatest, 1, 1, 1, 1, "float", import_composite<make_mish>, "x * tanh(softplus(x))",
     NarrowFloats::Widened},
    {"", "PRelu", 1, kLatest, 2, 2, 1, 1, "T=num T", import_prelu, "rectifier with given slopes below 0"},
    {"", "Relu", 1, kLatest, 1, 1, 1, 1, "num", import_relu, "max(x, 0)"},
    {"", "Selu", 1, kLatest, 1, 1, 1, 1, "float", import_selu, "scaled exponential linear unit",
     NarrowFloats::Widened},
    {"", "Shrink", 9, kLatest, 1, 1, 1, 1, "num", import_shrink,
     "shrinks towards 0 by a bias outside a band"},
    {"", "Sigmoid", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Logistic>, "1 / (1 + exp(-x))"},
    {"", "Softmax", 1, kLatest, 1, 1, 1, 1, "float", import_softmax<make_softmax>, "normalised exponentials"},
    {"", "Softplus", 1, kLatest, 1, 1, 1, 1, "float", import_composite<softplus>, "log(1 + exp(x))",
     NarrowFloats::Widened},
    {"", "Softsign", 1, kLatest, 1, 1, 1, 1, "float", import_softsign, "x / (1 + |x|)",
     NarrowFloats::Widened},
    {"", "SwiGLU", 28, kLatest, 2, 2, 1, 1, "T=float T", import_swiglu, "swish(a) * b",
     NarrowFloats::Widened},
    {"", "Swish", 24, kLatest, 1, 1, 1, 1, "float", import_swish, "x * sigmoid(alpha * x)",
     NarrowFloats::Widened},
    {"", "Tanh", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Tanh>, "hyperbolic tangent"},
    {"", "ThresholdedRelu", 1, 9, 1, 1, 1, 1, "float", import_early_thresholded_relu,
     "the same before ONNX has it; with a warning"},
    {"", "ThresholdedRelu", 10, kLatest, 1, 1, 1, 1, "float", import_thresholded_relu,
     "x above alpha, 0 elsewhere"},
};

} // namespace

std::span<const OperatorRow> activation_operators() {
  return kRows;
}

} // namespace firn::onnx
