// See conditioning.h.
#include "tests/random/conditioning.h"

#include "compiler/frontend/onnx/import.h"
#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace firn::test {
namespace {

// Operators whose result jumps somewhere: comparisons, roundings, choices of a position.
bool jumps(const std::string& op) {
  static const std::set<std::string> ops = {"ArgMax",
                                            "ArgMin",
                                            "Cast",
                                            "Ceil",
                                            "Compress",
                                            "Equal",
                                            "Floor",
                                            "Greater",
                                            "GreaterOrEqual",
                                            "GridSample",
                                            "Hardmax",
                                            "If",
                                            "Less",
                                            "LessOrEqual",
                                            "IsInf",
                                            "IsNaN",
                                            "Loop",
                                            "MaxPool",
                                            "MaxRoiPool",
                                            "MaxUnpool",
                                            "Mod",
                                            "NonMaxSuppression",
                                            "NonZero",
                                            "QuantizeLinear",
                                            "RoiAlign",
                                            "Round",
                                            "Shrink",
                                            "Sign",
                                            "ThresholdedRelu",
                                            "TopK",
                                            "Unique",
                                            "DynamicQuantizeLinear",
                                            "QLinearConv",
                                            "QLinearMatMul"};
  return ops.count(op) != 0;
}

// Operators that round at most once per element, or never: from equal bits they make equal bits as long as
// the result has room for all its digits, also where a multiplication and an addition become one instruction.
bool is_exact(const std::string& op) {
  static const std::set<std::string> ops = {"Abs",
                                            "Add",
                                            "Cast",
                                            "Ceil",
                                            "Clip",
                                            "Compress",
                                            "Concat",
                                            "ConstantOfShape",
                                            "DepthToSpace",
                                            "DequantizeLinear",
                                            "Expand",
                                            "Flatten",
                                            "Floor",
                                            "Gather",
                                            "GatherElements",
                                            "GatherND",
                                            "Identity",
                                            "LeakyRelu",
                                            "Max",
                                            "MaxPool",
                                            "GlobalMaxPool",
                                            "Min",
                                            "Mul",
                                            "Neg",
                                            "OneHot",
                                            "Pad",
                                            "PRelu",
                                            "ReduceMax",
                                            "ReduceMin",
                                            "Relu",
                                            "Reshape",
                                            "ReverseSequence",
                                            "Round",
                                            "ScatterElements",
                                            "ScatterND",
                                            "Sign",
                                            "Slice",
                                            "SpaceToDepth",
                                            "Split",
                                            "Squeeze",
                                            "Sub",
                                            "Sum",
                                            "ThresholdedRelu",
                                            "Tile",
                                            "TopK",
                                            "Transpose",
                                            "Trilu",
                                            "Unsqueeze",
                                            "Where",
                                            "containers",
                                            "CenterCropPad",
                                            "Hardmax",
                                            "Shrink"};
  return ops.count(op) != 0;
}

int precision(DType dtype) {
  return dtype == DType::F64 ? 53 : dtype == DType::F32 ? 24 : dtype == DType::F16 ? 11 : 8;
}

// Whether every element is a small multiple of 1/16, with a bit to spare.
bool has_room(const Literal& literal) {
  double largest = std::ldexp(1.0, precision(literal.dtype()) - 5);
  for (int64_t i = 0; i < literal.num_elements(); ++i) {
    double v = literal.get_double(i) * 16;
    if (v != std::floor(v) || std::fabs(v) > 16 * largest) return false;
  }
  return true;
}

double largest_of(const Literal& literal) {
  double largest = 0;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    largest = std::max(largest, std::fabs(literal.get_double(i)));
  return largest;
}

// Inputs of later nodes stay so small that sums of them do not overflow.
bool is_tame(const Literal& literal) {
  double limit = literal.dtype() == DType::F16 ? 300 : 1e4;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (!(std::fabs(literal.get_double(i)) <= limit)) return false; // NaN too
  return true;
}

double largest_error(DType dtype) {
  return dtype == DType::F64 ? 1e-9 : dtype == DType::F32 ? 1e-4 : dtype == DType::F16 ? 1e-2 : 6e-2;
}

LiteralRef disturbed(const LiteralRef& literal, double error, RandomSource& random) {
  auto result = std::make_shared<Literal>(literal->dtype(), literal->dims());
  double step = error * largest_of(*literal);
  for (int64_t i = 0; i < literal->num_elements(); ++i)
    result->set_double(i, literal->get_double(i) + step * random.uniform(-1, 1));
  return result;
}

// Disturbs by as much, but makes nearly vanishing values vanish and nearly equal ones equal, which random
// differences never do.
LiteralRef rounded(const LiteralRef& literal, double error) {
  auto result = std::make_shared<Literal>(literal->dtype(), literal->dims());
  double step = error * largest_of(*literal);
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    double value = literal->get_double(i);
    result->set_double(i, step > 0 ? std::round(value / step) * step : value);
  }
  return result;
}

// The rounding along a sum or product whose partial results are results too: each rounds by a share of the
// largest. Returns an eighth of it, since eight times the error is allowed.
double error_along(const Literal& x, const Literal& axes) {
  int64_t axis = axes.get_int(0);
  double extent = static_cast<double>(
      x.dims()[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.dims().size()) : axis)]);
  return extent * unit_roundoff(x.dtype() == DType::F64 ? DType::F64 : DType::F32) / 8;
}

// The rounding in x/2 (1 + erf(x / sqrt(2))) is a share of x/2, but a larger share of a result that vanishes
// far below 0: the evaluator rounds the sum, kernels compute it to 1e-7 of 1. Returns an eighth of it, as
// above.
double error_of_tail(DType dtype, double largest_x, const Literal& result) {
  double rounds = largest_x / 2 * 3 * unit_roundoff(dtype == DType::F64 ? DType::F64 : DType::F32);
  return rounds == 0 ? 0 : rounds / largest_of(result) / 8;
}

// States are sums of gates, which are up to 1 and rounded as such: the error is a larger share of a state
// that nearly vanishes. Returns an eighth of it, as above.
double error_of_gates(DType dtype, const Literal& result) {
  double rounds = 4 * unit_roundoff(dtype == DType::F64 ? DType::F64 : DType::F32);
  double largest = largest_of(result);
  return largest == 0 ? 0 : rounds / largest / 8;
}

// Sums of products round by their partial sums, however near to zero they end. Random roundings add up to the
// root of their number. Returns an eighth of it, as above.
double error_of_products(const Literal& lhs, const Literal& rhs, const Literal& result) {
  double largest = largest_of(result);
  if (largest == 0 || result.dims().empty()) return 0;
  double rows = static_cast<double>(result.num_elements()) / static_cast<double>(result.dims().back());
  double steps = std::max(1.0, static_cast<double>(lhs.num_elements()) / rows);
  double rounds = std::sqrt(steps) * unit_roundoff(result.dtype() == DType::F64 ? DType::F64 : DType::F32);
  return rounds * largest_of(lhs) * largest_of(rhs) / largest / 8;
}

// The rounding between the steps of an operator's formula, which disturbed operands do not show.
double error_within(const Values& values, const TestNode& node, const Literal& result) {
  const std::vector<std::string> operands = node.operands();
  auto literal = [&](size_t i) -> const Literal& { return *values.at(operands[i]).literal; };
  if (node.op == "CumSum" || node.op == "CumProd") return error_along(literal(0), literal(1));
  if (node.op == "GRU" || node.op == "LSTM" || node.op == "RNN")
    return error_of_gates(result.dtype(), result);
  if ((node.op == "Gemm" || node.op == "MatMul") && is_float(result.dtype()))
    return error_of_products(*values.at(node.inputs[0]).literal, *values.at(node.inputs[1]).literal, result);
  if (node.op != "Gelu" && node.op != "com.microsoft.BiasGelu") return 0;
  double largest_x = 0;
  for (size_t i = 0; i < operands.size(); ++i) largest_x += largest_of(literal(i));
  return error_of_tail(result.dtype(), largest_x, result);
}

// The largest difference as a share of the largest element; integers must be equal.
double distance(const Literal& a, const Literal& b) {
  if (a.dims() != b.dims()) return INFINITY;
  double difference = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (!is_float(a.dtype()) && a.get_int(i) != b.get_int(i)) return INFINITY;
    double d = is_float(a.dtype()) ? std::fabs(a.get_double(i) - b.get_double(i)) : 0;
    if (std::isnan(d)) return INFINITY;
    difference = std::max(difference, d);
  }
  double largest = is_float(a.dtype()) ? largest_of(a) : 1;
  return difference == 0 ? 0 : largest == 0 ? INFINITY : difference / largest;
}

// The node alone as a model, on which any operands can be tried.
class LonelyNode {
public:
  LonelyNode(const Values& values, const TestNode& node) {
    TestGraph around;
    for (const std::string& name : node.operands()) {
      bool constant = values.at(name).known;
      (constant ? around.constants : around.inputs).push_back(name);
      around.runs[0][name] = values.at(name);
      if (!constant) operands_.push_back(values.at(name));
    }
    around.nodes = {node};
    for (TestBound& bound : around.nodes[0].bounds) bound.derived = false;
    for (const std::string& name : node.outputs)
      if (!name.empty()) around.outputs.push_back(name);
    DiagnosticList diagnostics;
    model_ = onnx::import_onnx_bytes("node.onnx", around.encode(), around.import_options(), diagnostics);
    if (!model_) refusal_ = diagnostics.empty() ? "no message" : diagnostics.messages()[0].message;
  }

  const std::vector<TestValue>& operands() const { return operands_; }
  const std::string& refusal() const { return refusal_; }
  bool is_counted() const {
    const std::vector<Value>& results = model_->module->main().body().results();
    return std::any_of(results.begin(), results.end(), [](const Value& v) { return !v.type().is_static(); });
  }

  // Results for operands that are off by scale * max(error, floor), empty if that fails. Without `random`
  // they are rounded.
  std::vector<LiteralRef> evaluate_off(double scale, bool all, RandomSource* random) {
    std::vector<LiteralRef> inputs;
    for (const TestValue& operand : operands_) {
      DType dtype = operand.literal->dtype();
      // Sums of narrow floats are kept in f32.
      double floor = all ? unit_roundoff(dtype == DType::F64 ? DType::F64 : DType::F32) : 0;
      double error = scale * std::max(operand.error, floor);
      inputs.push_back(error == 0 || !is_float(dtype) ? operand.literal
                       : random                       ? disturbed(operand.literal, error, *random)
                                                      : rounded(operand.literal, error));
    }
    return evaluate_on(inputs);
  }

private:
  std::vector<LiteralRef> evaluate_on(const std::vector<LiteralRef>& inputs) {
    auto results = evaluate(*model_->module, inputs);
    if (results) return *results;
    refusal_ = results.error().message;
    return {};
  }

  std::unique_ptr<onnx::ImportedModel> model_;
  std::vector<TestValue> operands_;
  std::string refusal_;
};

// Whether the results stay put, or move no more than in proportion, when operands are much further off than
// they can be.
bool is_far_from_jumps(LonelyNode& lonely, const std::vector<TestValue>& results, RandomSource& random) {
  constexpr int kTrials = 16;
  constexpr double kScale = 64;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<LiteralRef> off = lonely.evaluate_off(kScale, /*all=*/false, trial > 0 ? &random : nullptr);
    if (off.size() != results.size()) return false;
    for (size_t i = 0; i < off.size(); ++i)
      if (distance(*results[i].literal, *off[i]) > 4 * kScale * results[i].error) return false;
  }
  return true;
}

} // namespace

double unit_roundoff(DType dtype) {
  return std::max(std::ldexp(1.0, -precision(dtype)), 1e-14);
}

NodeOutcome evaluate_node(const Values& values, const TestNode& node, RandomSource& random) {
  NodeOutcome outcome;
  LonelyNode lonely(values, node);
  if (!lonely.refusal().empty()) return {{}, false, lonely.refusal()};
  bool counted = lonely.is_counted();
  std::vector<TestValue> results;
  for (LiteralRef& literal : lonely.evaluate_off(0, false, &random)) {
    results.push_back({std::move(literal), 0});
    const Literal& result = *results.back().literal;
    if (is_float(result.dtype()) && !is_tame(result)) return {};
  }
  if (results.empty()) return {{}, false, lonely.refusal()};
  bool known = lonely.operands().empty() || node.op == "Shape";
  for (TestValue& result : results) result.known = known && !is_float(result.literal->dtype());
  bool from_equal_bits = true;
  for (const TestValue& operand : lonely.operands()) from_equal_bits &= operand.error == 0;
  bool exact = is_exact(node.op) && from_equal_bits;
  for (const TestValue& result : results)
    exact &= !is_float(result.literal->dtype()) || has_room(*result.literal);
  if (exact) return {std::move(results), counted, ""};

  // Few disturbances show a deviation to divide by that is tiny in one row alone.
  const int trials = node.op == "MeanVarianceNormalization" ? 16 : 2;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<LiteralRef> off = lonely.evaluate_off(1, /*all=*/!jumps(node.op), &random);
    if (off.size() != results.size()) return {};
    for (size_t i = 0; i < off.size(); ++i)
      results[i].error = std::max(results[i].error, 2 * distance(*results[i].literal, *off[i]));
  }
  for (TestValue& result : results) {
    DType dtype = result.literal->dtype();
    if (is_float(dtype))
      result.error += 2 * unit_roundoff(dtype) + error_within(values, node, *result.literal);
    if (result.error > (is_float(dtype) ? largest_error(dtype) : 0)) return {};
  }
  if (jumps(node.op) && !from_equal_bits && !is_far_from_jumps(lonely, results, random)) return {};
  return {std::move(results), counted, ""};
}

} // namespace firn::test
