// Importers of random numbers. They are the same on every run of the program: a function of the node's seed
// and of the element's index (rng_uniform in compiler/graph/ops.def). A node without a seed is numbered.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/training/training_forms.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

int64_t seed_of(NodeContext& node) {
  if (!node.has_attribute("seed")) return node.number();
  double seed = node.float_attribute("seed", 0);
  return std::isfinite(seed) ? static_cast<int64_t>(std::fmod(seed, 2147483648.0) * 1024.0) % 2147483648 : 0;
}

Value uniform(NodeContext& node, DType dtype, const std::vector<Dim>& dims, double low, double high,
              int64_t seed) {
  if (!is_float(dtype))
    return node.fail("gives " + std::string(dtype_name(dtype)) + ", wants a float type"), Value{};
  Instruction* made = node.make_typed(Opcode::RngUniform, {node.scalar(dtype, low), node.scalar(dtype, high)},
                                      {Type::tensor(dtype, dims)}, {{"seed", seed}});
  return made ? made->result() : Value{};
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v), with u in (0, 1].
Value normal(NodeContext& node, DType dtype, const std::vector<Dim>& dims, double mean, double scale,
             int64_t seed) {
  Value u = uniform(node, DType::F32, dims, 0, 1, seed), v = uniform(node, DType::F32, dims, 0, 1, seed + 1);
  auto number = [&](double value) { return node.scalar(DType::F32, value); };
  Value log = node.unary(Opcode::Log, node.binary(Opcode::Subtract, number(1), u));
  Value radius = node.unary(Opcode::Sqrt, node.binary(Opcode::Multiply, log, number(-2)));
  Value angle = node.unary(Opcode::Cosine, node.binary(Opcode::Multiply, v, number(2 * M_PI)));
  Value x = node.binary(Opcode::Multiply, radius, angle);
  x = node.binary(Opcode::Add, node.binary(Opcode::Multiply, x, number(scale)), number(mean));
  return node.convert(x, dtype);
}

std::optional<std::vector<Dim>> random_dims(NodeContext& node) {
  if (node.num_inputs() > 0) return node.input(0).type().dims;
  Ints shape = node.required_ints("shape");
  for (int64_t extent : shape)
    if (!node.check(extent >= 0, "attribute 'shape' holds " + std::to_string(extent))) return std::nullopt;
  if (node.failed()) return std::nullopt;
  return std::vector<Dim>(shape.begin(), shape.end());
}

DType random_dtype(NodeContext& node) {
  if (auto dtype = node.dtype_attribute("dtype")) return *dtype;
  return node.num_inputs() > 0 ? node.input(0).dtype() : DType::F32;
}

void import_random_uniform(NodeContext& node) {
  auto dims = random_dims(node);
  if (dims)
    node.set_output(0, uniform(node, random_dtype(node), *dims, node.float_attribute("low", 0),
                               node.float_attribute("high", 1), seed_of(node)));
}

void import_random_normal(NodeContext& node) {
  auto dims = random_dims(node);
  DType dtype = random_dtype(node);
  if (!dims ||
      !node.check(is_float(dtype), "gives " + std::string(dtype_name(dtype)) + ", wants a float type"))
    return;
  node.set_output(0, normal(node, dtype, *dims, node.float_attribute("mean", 0),
                            node.float_attribute("scale", 1), seed_of(node)));
}

void import_bernoulli(NodeContext& node) {
  Value x = node.input(0);
  DType dtype = node.dtype_attribute("dtype").value_or(x.dtype());
  if (dtype == DType::String) return node.fail_unsupported("a tensor of strings");
  Value draw = uniform(node, x.dtype(), x.type().dims, 0, 1, seed_of(node));
  node.set_output(0, node.convert(node.compare("lt", draw, x), dtype));
}

// A training step drops whatever the node's mode is; nothing else of such a model does.
void import_trainable_dropout(NodeContext& node, DType mask) {
  double ratio = 0.5;
  if (node.opset() < 12) {
    ratio = node.float_attribute("ratio", 0.5);
  } else if (node.has_input(1)) {
    auto given = node.constant_doubles(node.input(1));
    if (!given || given->size() != 1)
      return node.fail_unsupported(node.input_label(1) + " is no constant, as a training step wants");
    ratio = given->front();
  }
  if (!node.check(ratio >= 0 && ratio <= 1, "its ratio is " + std::to_string(ratio) + ", wants 0 to 1"))
    return;
  GraphBuilder builder = node.builder();
  Instruction* made = training::make_dropout(builder, node.input(0), ratio,
                                             node.has_output(1) ? std::optional(mask) : std::nullopt);
  for (int i = 0; i < made->num_results(); ++i) node.set_output(i, made->result(i));
}

// Elements whose draw is below the ratio become 0, the others are divided by 1 - ratio. The training mode may
// be a constant or decided by a run.
void import_dropout(NodeContext& node) {
  Value x = node.input(0);
  DType mask_dtype = node.opset() < 10 ? x.dtype() : DType::Bool;
  Value keeps = node.splat(mask_dtype, x.type().dims, 1), y = x;
  auto training = node.constant_ints(node.input(2));
  bool is_known = node.opset() < 12 || !node.has_input(2) || (training && training->size() == 1);
  if (is_known && is_float(x.dtype()) && node.state().options.keep_initializers)
    return import_trainable_dropout(node, mask_dtype);
  bool infers = is_known && (node.opset() < 12 || !node.has_input(2) || !training->front());
  if (!infers) {
    Value ratio = node.has_input(1) ? scalar_input(node, 1, DType::F32) : node.scalar(DType::F32, 0.5);
    Value trains = scalar_input(node, 2, DType::Bool);
    Value draw = uniform(node, DType::F32, x.type().dims, 0, 1, seed_of(node));
    // `draw >= ratio` would drop everything if the ratio is NaN.
    keeps = node.select(trains, node.unary(Opcode::Not, node.compare("lt", draw, ratio)), keeps);
    Value rest = subtract(node, node.scalar(DType::F32, 1), ratio);
    Value scaled = node.convert(
        divide(node, node.widened(x), node.convert(rest, NodeContext::widened_dtype(x.dtype()))), x.dtype());
    y = node.select(trains, node.select(keeps, scaled, node.scalar(x.dtype(), 0)), x);
  }
  node.set_output(0, y);
  if (node.has_output(1)) node.set_output(1, keeps);
}

// Each draw selects a class by the row's cumulative probabilities.
void import_multinomial(NodeContext& node) {
  int64_t count = node.int_attribute("sample_size", 1);
  DType dtype = node.dtype_attribute("dtype").value_or(DType::I32);
  if (!node.check_rank(0, 2)) return;
  const Dim classes = node.input(0).type().dims[1];
  int64_t max = std::min(classes.extent.upper_bound(), kAttributeLimit);
  if (!node.check(max > 0, node.input_label(0) + " has no classes") ||
      !node.check(count > 0 && count <= kAttributeLimit / max,
                  "attribute sample_size is " + std::to_string(count) + ", out of range") ||
      !node.check(dtype == DType::I32 || dtype == DType::I64,
                  "gives " + std::string(dtype_name(dtype)) + ", wants i32 or i64"))
    return;
  Value x = node.input(0);
  Dim batch = x.type().dims[0];
  Value shifted = subtract(node, x, node.reduce(Opcode::Maximum, x, {1}, true));
  Value sums =
      node.op(Opcode::Cumulative, {node.unary(Opcode::Exponential, shifted)},
              {{"dim", int64_t{1}}, {"reducer", Word{"add"}}, {"exclusive", false}, {"reverse", false}});
  Value draws = uniform(node, DType::F32, {batch, Dim(count)}, 0, 1, seed_of(node));
  if (!sums || !draws) return;
  // A point is below the last sum, as a draw is below 1: the classes whose sums it passes come before its
  // own.
  Value last = subtract(node, node.dim_size(x, 1), node.scalar_int(DType::I64, 1));
  Value total = node.op(Opcode::Gather, {sums, node.reshape(last, {Dim(1)})}, {{"axis", int64_t{1}}});
  Value points = multiply(node, node.convert(draws, sums.dtype()), total);
  Value passed = node.compare("le", node.unsqueeze(sums, 1), node.unsqueeze(points, 2));
  Value hit = node.reduce(Opcode::Add, node.convert(passed, DType::I32), {2}, false);
  hit = smaller(node, hit, node.convert(last, DType::I32));
  node.set_output(0, node.convert(hit, dtype));
}

const OperatorRow kRows[] = {
    {"", "Bernoulli", 15, kLatest, 1, 1, 1, 1, "float", import_bernoulli,
     "ones with given probabilities; the same on every run"},
    {"", "Dropout", 1, kLatest, 1, 3, 1, 2, "float float bool", import_dropout,
     "the identity at inference; in training what is dropped is the same on every run"},
    {"", "Multinomial", 7, kLatest, 1, 1, 1, 1, "float", import_multinomial,
     "classes drawn by log probabilities; the same on every run", NarrowFloats::Widened},
    {"", "RandomNormal", 1, kLatest, 0, 0, 1, 1, "", import_random_normal,
     "normal random numbers; the same on every run"},
    {"", "RandomNormalLike", 1, kLatest, 1, 1, 1, 1, "any", import_random_normal,
     "normal random numbers; the same on every run"},
    {"", "RandomUniform", 1, kLatest, 0, 0, 1, 1, "", import_random_uniform,
     "uniform random numbers; the same on every run"},
    {"", "RandomUniformLike", 1, kLatest, 1, 1, 1, 1, "any", import_random_uniform,
     "uniform random numbers; the same on every run"},
};

} // namespace

std::span<const OperatorRow> random_operators() {
  return kRows;
}

} // namespace firn::onnx
