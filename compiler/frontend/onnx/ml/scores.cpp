// Transforms of scores and labels of classes.
#include "compiler/frontend/onnx/ml/scores.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/graph/composites.h"

#include <cmath>

namespace firn::onnx {

namespace {

// sqrt(2) * erfinv(2 s - 1), by the approximation that ONNX Runtime uses: sqrt(sqrt(v * v - w) - v) with w =
// log(1 - x * x) / 0.147, rearranged so that nothing cancels near s = 0.5.
Value probit(NodeContext& node, Value scores) {
  Value x = plus(node, times(node, scores, 2), -1), zero = node.scalar(scores.dtype(), 0);
  Value log = node.unary(Opcode::LogPlusOne, node.unary(Opcode::Negate, multiply(node, x, x)));
  Value v = plus(node, times(node, log, 0.5), 2 / (M_PI * 0.147)), w = times(node, log, 1 / 0.147);
  Value root = node.unary(Opcode::Sqrt, subtract(node, multiply(node, v, v), w));
  // v is below 0 for scores close to 0 and 1, where the difference does not cancel.
  Value apart = divide(node, node.unary(Opcode::Negate, w), add(node, root, v));
  Value square = node.select(node.compare("gt", v, zero), apart, subtract(node, root, v));
  Value magnitude = node.unary(Opcode::Sqrt, square);
  Value negated = node.unary(Opcode::Negate, magnitude);
  return times(node, node.select(node.compare("lt", x, zero), negated, magnitude), std::sqrt(2.0));
}

// exp(s - max) / sum, but scores of 0 stay 0: they count as s * exp(-max).
Value softmax_zero(NodeContext& node, Value scores) {
  Value max = node.reduce(Opcode::Maximum, scores, {1}, true);
  Value powers = node.unary(Opcode::Exponential, subtract(node, scores, max));
  Value kept = multiply(node, scores, node.unary(Opcode::Exponential, node.unary(Opcode::Negate, max)));
  Value zero = node.compare("le", node.unary(Opcode::Abs, scores), node.scalar(scores.dtype(), 0.0000001f));
  Value parts = node.select(zero, kept, powers);
  return divide(node, parts, node.reduce(Opcode::Add, parts, {1}, true));
}

} // namespace

PostTransform post_transform_attribute(NodeContext& node) {
  std::string word = node.choice_attribute("post_transform", "NONE",
                                           {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
  return word == "SOFTMAX"        ? PostTransform::Softmax
         : word == "LOGISTIC"     ? PostTransform::Logistic
         : word == "SOFTMAX_ZERO" ? PostTransform::SoftmaxZero
         : word == "PROBIT"       ? PostTransform::Probit
                                  : PostTransform::None;
}

Value post_transformed(NodeContext& node, Value scores, PostTransform transform) {
  if (!scores || transform == PostTransform::None) return scores;
  if (transform == PostTransform::Probit) return probit(node, scores);
  if (scores.type().dims[1] == Dim(1)) return scores;
  if (transform == PostTransform::Logistic) return node.unary(Opcode::Logistic, scores);
  if (transform == PostTransform::SoftmaxZero) return softmax_zero(node, scores);
  GraphBuilder builder = node.builder();
  return make_softmax(builder, scores, 1);
}

Value both_classes(NodeContext& node, Value scores, Value negative, PostTransform transform) {
  if (transform == PostTransform::Probit)
    return node.fail_unsupported(
               "attribute post_transform is PROBIT, which two classes by one score do not have"),
           Value{};
  bool logistic = transform == PostTransform::Logistic;
  Value pair = node.concatenate({logistic ? node.unary(Opcode::Negate, scores) : negative, scores}, 1);
  return logistic ? node.unary(Opcode::Logistic, pair) : pair;
}

LiteralRef class_labels(NodeContext& node, std::string_view integers, std::string_view strings) {
  std::vector<std::string> names = node.strings_attribute(strings);
  if (!names.empty()) {
    auto count = static_cast<int64_t>(names.size());
    return Literal::strings({count}, std::move(names));
  }
  Ints labels = node.unbounded_ints_attribute(integers);
  bool given =
      !node.failed() && node.check(!labels.empty(), "attribute " + std::string(integers) + " or " +
                                                        std::string(strings) + " is missing or empty");
  return given ? Literal::of_i64(labels) : nullptr;
}

Value labels_of(NodeContext& node, const LiteralRef& labels, Value classes) {
  bool counted = labels->dtype() == DType::I64; // labels 0, 1, 2, ... are the indices themselves
  for (int64_t i = 0; counted && i < labels->num_elements(); ++i) counted = labels->get_int(i) == i;
  if (counted) return classes;
  return node.op(Opcode::Gather, {node.constant(labels), classes}, {{"axis", int64_t{0}}});
}

Value best_labels(NodeContext& node, const LiteralRef& labels, Value scores) {
  Attributes attributes{{"dim", int64_t{1}}, {"kind", Word{"max"}}, {"select_last", false}};
  return labels_of(node, labels, node.op(Opcode::ArgReduce, {scores}, attributes));
}

Value feature_rows(NodeContext& node) {
  Value x = node.input(0);
  if (!node.check(x.rank() == 1 || x.rank() == 2,
                  node.input_label(0) + " is " + x.type().to_string() + ", wants rank 1 or 2") ||
      !node.static_dim(0, x.rank() - 1))
    return {};
  return node.convert(x.rank() == 1 ? node.unsqueeze(x, 0) : x, DType::F32);
}

Value f32_constant(NodeContext& node, Ints dims, const std::vector<double>& values) {
  return node.constant(Literal::of(DType::F32, std::move(dims), values));
}

} // namespace firn::onnx
