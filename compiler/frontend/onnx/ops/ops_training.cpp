// Importers of ai.onnx.preview.training: gradients, and one step of an optimizer over any number of tensors.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/training_operators.h"

namespace firn::onnx {

namespace {

// Inputs are R, T, then all tensors, all their gradients, and all tensors of each kind of history.
struct Step {
  Value rate, count;        // scalars in f64: powers of numbers close to 1 need the digits
  std::vector<Values> sets; // per tensor: the tensor, its gradient, its histories
};

std::optional<Step> read_step(NodeContext& node, int kinds) {
  int listed = node.num_inputs() - 2, tensors = listed / kinds, wanted = tensors * (kinds - 1);
  if (!node.check(listed > 0 && listed % kinds == 0 && node.num_outputs() <= wanted,
                  "has " + std::to_string(listed) + " tensors behind R and T and " +
                      std::to_string(node.num_outputs()) + " outputs, wants " + std::to_string(kinds) +
                      " and " + std::to_string(kinds - 1) + " per optimized tensor"))
    return std::nullopt;
  Step step{scalar_input(node, 0, DType::F64), scalar_input(node, 1, DType::F64), {}};
  for (int i = 0; i < tensors; ++i) {
    step.sets.emplace_back();
    for (int kind = 0; kind < kinds; ++kind) {
      int index = 2 + kind * tensors + i;
      Value value = node.input(index);
      if (!node.check_given(index) ||
          !node.check(value.type() == node.input(2 + i).type(),
                      node.input_label(index) + " is " + value.type().to_string() + ", " +
                          node.input_label(2 + i) + " is " + node.input(2 + i).type().to_string() +
                          ": both must have one type"))
        return std::nullopt;
      step.sets.back().push_back(value);
    }
  }
  if (node.failed()) return std::nullopt;
  return step;
}

// `updated` is the new tensor and its new histories; outputs stand in the order of inputs.
void set_step(NodeContext& node, const Step& step, size_t tensor, const Values& updated) {
  for (size_t kind = 0; kind < updated.size(); ++kind)
    node.set_output(static_cast<int>(kind * step.sets.size() + tensor), updated[kind]);
}

// The gradient of the loss plus norm_coefficient / 2 times the tensor's squared norm.
Value regularized(NodeContext& node, const Values& set) {
  return add(node, times(node, set[0], node.float_attribute("norm_coefficient", 0)), set[1]);
}

// factor * old + (1 - factor) * latest
Value decayed(NodeContext& node, Value old, Value latest, double factor) {
  return add(node, times(node, old, factor), times(node, latest, 1 - factor));
}

Value started(NodeContext& node, const Step& step) {
  return node.compare("gt", step.count, node.scalar(DType::F64, 0));
}

void import_adagrad(NodeContext& node) {
  auto step = read_step(node, 3);
  if (!step) return;
  double decay = node.float_attribute("decay_factor", 0), epsilon = node.float_attribute("epsilon", 1e-6f);
  Value rate = divide(node, step->rate, plus(node, times(node, step->count, decay), 1));
  for (size_t i = 0; i < step->sets.size(); ++i) {
    const Values& set = step->sets[i];
    Value gradient = regularized(node, set), squares = add(node, set[2], multiply(node, gradient, gradient));
    Value adaptive = plus(node, node.unary(Opcode::Sqrt, squares), epsilon);
    Value moved = multiply(node, node.convert(rate, set[0].dtype()), divide(node, gradient, adaptive));
    set_step(node, *step, i, {subtract(node, set[0], moved), squares});
  }
}

void import_adam(NodeContext& node) {
  auto step = read_step(node, 4);
  if (!step) return;
  double alpha = node.float_attribute("alpha", 0.9f), beta = node.float_attribute("beta", 0.999f);
  double epsilon = node.float_attribute("epsilon", 1e-6f);
  double shrink = 1 - node.float_attribute("norm_coefficient_post", 0);
  auto missing = [&](double factor) { // 1 - factor^T
    Value power = node.binary(Opcode::Power, node.scalar(DType::F64, factor), step->count);
    return subtract(node, node.scalar(DType::F64, 1), power);
  };
  Value adjusted =
      divide(node, multiply(node, step->rate, node.unary(Opcode::Sqrt, missing(beta))), missing(alpha));
  Value rate = node.select(started(node, *step), adjusted, step->rate);
  for (size_t i = 0; i < step->sets.size(); ++i) {
    const Values& set = step->sets[i];
    Value gradient = regularized(node, set), mean = decayed(node, set[2], gradient, alpha);
    Value squares = decayed(node, set[3], multiply(node, gradient, gradient), beta);
    Value root = plus(node, node.unary(Opcode::Sqrt, squares), epsilon);
    Value moved = multiply(node, node.convert(rate, set[0].dtype()), divide(node, mean, root));
    Value updated = subtract(node, set[0], moved);
    set_step(node, *step, i, {shrink == 1 ? updated : times(node, updated, shrink), mean, squares});
  }
}

void import_momentum(NodeContext& node) {
  auto step = read_step(node, 3);
  bool nesterov = node.choice_attribute("mode", "", {"standard", "nesterov"}) == "nesterov";
  double alpha = node.float_attribute("alpha", 0), beta = node.float_attribute("beta", 1);
  if (!step || node.failed()) return;
  Value factor = node.select(started(node, *step), node.scalar(DType::F64, beta), node.scalar(DType::F64, 1));
  for (size_t i = 0; i < step->sets.size(); ++i) {
    const Values& set = step->sets[i];
    DType dtype = set[0].dtype();
    Value gradient = regularized(node, set);
    Value velocity =
        add(node, times(node, set[2], alpha), multiply(node, node.convert(factor, dtype), gradient));
    Value direction = nesterov ? add(node, gradient, times(node, velocity, alpha)) : velocity;
    Value moved = multiply(node, node.convert(step->rate, dtype), direction);
    set_step(node, *step, i, {subtract(node, set[0], moved), velocity});
  }
}

constexpr const char* kDomain = "ai.onnx.preview.training";

const OperatorRow kRows[] = {
    {kDomain, "Adagrad", 1, kLatest, 5, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_adagrad,
     "one step of gradient descent with accumulated squares"},
    {kDomain, "Adam", 1, kLatest, 6, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_adam,
     "one step of gradient descent with two running means"},
    {kDomain, "Gradient", 1, kLatest, 1, kVariadic, 1, kVariadic, "", import_gradient,
     "derivatives of a tensor of the graph, at values that are given"},
    {kDomain, "Momentum", 1, kLatest, 5, kVariadic, 1, kVariadic, "f32|f64 i64 f32|f64", import_momentum,
     "one step of gradient descent with momentum, standard or Nesterov's"},
};

} // namespace

std::span<const OperatorRow> training_operators() {
  return kRows;
}

} // namespace firn::onnx
