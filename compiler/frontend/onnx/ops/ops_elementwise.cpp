// Importers of elementwise arithmetic, comparison, logic and bit operators, with numpy broadcasting and the
// explicit `broadcast`/`axis` attributes of opsets before 7.
#include "compiler/frontend/onnx/import_context.h"
#include "compiler/frontend/onnx/operator_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace firn::onnx {

namespace {

// Before opset 7 rhs covers the dims of lhs from `axis` on (absent: the last ones): rhs with dims of 1
// appended, so that numpy's rule aligns it.
Value aligned_rhs(NodeContext& node) {
  Value lhs = node.input(0), rhs = node.input(1);
  if (node.opset() >= 7 || !node.flag_attribute("broadcast", false) || !node.has_attribute("axis"))
    return rhs;
  auto axis = node.axis(node.int_attribute("axis", 0), lhs.rank());
  if (!axis) return {};
  int trailing = lhs.rank() - *axis - rhs.rank();
  // An rhs of one element may be given with more dims than remain.
  if (!node.check(trailing >= 0, "attribute axis = " + std::to_string(*axis) + " leaves no room for " +
                                     node.input_label(1) + " of rank " + std::to_string(rhs.rank())))
    return {};
  std::vector<Dim> dims = rhs.type().dims;
  dims.insert(dims.end(), static_cast<size_t>(trailing), Dim(1));
  return node.reshape(rhs, std::move(dims));
}

template <Opcode opcode> void import_unary(NodeContext& node) {
  node.set_output(0, node.unary(opcode, node.input(0)));
}

template <Opcode opcode> void import_binary(NodeContext& node) {
  node.set_output(0, node.binary(opcode, node.input(0), aligned_rhs(node)));
}

enum class Direction { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };
template <Direction direction> void import_compare(NodeContext& node) {
  constexpr const char* words[] = {"eq", "lt", "le", "gt", "ge"};
  node.set_output(0, node.compare(words[static_cast<int>(direction)], node.input(0), aligned_rhs(node)));
}

template <Opcode opcode> void import_variadic(NodeContext& node) {
  Value result = node.input(0);
  for (int i = 1; i < node.num_inputs(); ++i) result = node.binary(opcode, result, node.input(i));
  node.set_output(0, result);
}

void import_mean(NodeContext& node) {
  Value sum = node.input(0);
  for (int i = 1; i < node.num_inputs(); ++i) sum = node.binary(Opcode::Add, sum, node.input(i));
  if (!sum) return;
  node.set_output(0, node.binary(Opcode::Divide, sum, node.scalar(sum.dtype(), node.num_inputs())));
}

void import_reciprocal(NodeContext& node) {
  Value x = node.input(0);
  node.set_output(0, node.binary(Opcode::Divide, node.scalar(x.dtype(), 1), x));
}

// A power moved to the nearest integer if it misses that by no more than its own error, as it is truncated
// next.
Value settle_integers(NodeContext& node, Value power) {
  Value whole = node.unary(Opcode::RoundNearestEven, power);
  Value error = node.unary(Opcode::Abs, node.binary(Opcode::Subtract, power, whole));
  Value allowed =
      node.binary(Opcode::Multiply, node.unary(Opcode::Abs, power), node.scalar(power.dtype(), 1e-14));
  return node.select(node.compare("le", error, allowed), whole, power);
}

// The result has the base's dtype; an exponent of another dtype decides where the power is computed.
void import_pow(NodeContext& node) {
  Value base = node.input(0), exponent = aligned_rhs(node);
  if (!exponent) return;
  DType result = base.dtype(), work = result;
  if (is_integer(result) && is_float(exponent.dtype())) work = DType::F64;
  Value power = node.binary(Opcode::Power, node.convert(base, work), node.convert(exponent, work));
  if (power && work != result) power = settle_integers(node, power);
  node.set_output(0, node.convert(power, result));
}

// Whether the value holds known integers, none of them below `min`.
bool are_known_from(NodeContext& node, Value value, int64_t min) {
  auto known = value && is_integer(value.dtype()) ? node.known_ints(value) : std::nullopt;
  return known && std::all_of(known->begin(), known->end(),
                              [&](const IntExpr& each) { return each.lower_bound() >= min; });
}

// Whether input 0 holds known integers of dims that are at most 0, and input 1 ones that are above 0, as in
// (-width) % 8. All are as small as extents, so that sums do not wrap.
bool is_below_zero_of_dims(NodeContext& node) {
  if (node.input(0).dtype() != DType::I64) return false;
  auto lhs = node.known_ints(node.input(0)), rhs = node.known_ints(node.input(1));
  auto constant = [](const IntExpr& each) { return each.is_constant(); };
  if (!lhs || !rhs || std::all_of(lhs->begin(), lhs->end(), constant)) return false;
  constexpr int64_t kLargest = int64_t{1} << 40;
  auto negative = [](const IntExpr& each) {
    return each.upper_bound() <= 0 && each.lower_bound() > -kLargest;
  };
  auto positive = [](const IntExpr& each) { return each.lower_bound() > 0 && each.upper_bound() < kLargest; };
  return std::all_of(lhs->begin(), lhs->end(), negative) && std::all_of(rhs->begin(), rhs->end(), positive);
}

// (-x) mod m as the difference from x to the next multiple of m, so that their sum is known to be that
// multiple.
Value lacking(NodeContext& node, Value minus_x, Value m) {
  Value x = node.unary(Opcode::Negate, minus_x), one = node.scalar_int(m.dtype(), 1);
  Value rounded = node.binary(Opcode::Subtract, node.binary(Opcode::Add, x, m), one);
  Value multiple = node.binary(Opcode::Multiply, node.binary(Opcode::Divide, rounded, m), m);
  return node.binary(Opcode::Subtract, multiple, x);
}

// fmod = 0: the remainder takes the divisor's sign, as in Python; fmod = 1: the dividend's, as in C.
void import_mod(NodeContext& node) {
  Value lhs = node.input(0), rhs = node.input(1);
  DType dtype = lhs.dtype();
  bool truncated = node.flag_attribute("fmod", false);
  if (!truncated && is_float(dtype) && node.opset() < 28) {
    node.fail(node.input_label(0) + " has dtype " + std::string(dtype_name(dtype)) +
              ", floats want fmod = 1");
    return;
  }
  if (!truncated && is_below_zero_of_dims(node)) return node.set_output(0, lacking(node, lhs, rhs));
  Value remainder = node.binary(Opcode::Remainder, lhs, rhs);
  if (truncated || is_unsigned(dtype) ||
      (are_known_from(node, remainder, 0) && are_known_from(node, rhs, 1))) {
    node.set_output(0, remainder);
    return;
  }
  Value zero = node.scalar(dtype, 0);
  if (is_float(dtype)) {
    // A zero takes the divisor's sign as well.
    Value nothing = node.select(node.compare("lt", rhs, zero), node.scalar(dtype, -0.0), zero);
    remainder = node.select(node.compare("eq", remainder, zero), nothing, remainder);
  }
  Value opposite = node.compare("ne", node.compare("lt", remainder, zero), node.compare("lt", rhs, zero));
  Value adjust = node.binary(Opcode::And, node.compare("ne", remainder, zero), opposite);
  node.set_output(0, node.select(adjust, node.binary(Opcode::Add, remainder, rhs), remainder));
}

void import_bit_shift(NodeContext& node) {
  std::string direction = node.choice_attribute("direction", "", {"LEFT", "RIGHT"});
  if (!node.check(!direction.empty(), "attribute direction is missing")) return;
  Opcode opcode = direction == "LEFT" ? Opcode::ShiftLeft : Opcode::ShiftRight;
  node.set_output(0, node.binary(opcode, node.input(0), node.input(1)));
}

// Eight-bit floats are tested through f32, which holds them exactly.
Value testable(NodeContext& node) {
  Value x = node.input(0);
  return bit_width(x.dtype()) <= 8 ? node.convert(x, DType::F32) : x;
}

void import_is_nan(NodeContext& node) {
  node.set_output(0, node.unary(Opcode::IsNaN, testable(node)));
}

void import_is_inf(NodeContext& node) {
  Value x = testable(node);
  if (!x) return;
  bool negative = node.flag_attribute("detect_negative", true),
       positive = node.flag_attribute("detect_positive", true);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (negative && positive)
    node.set_output(0, node.unary(Opcode::IsInf, x));
  else if (negative || positive)
    node.set_output(0, node.compare("eq", x, node.scalar(x.dtype(), positive ? infinity : -infinity)));
  else
    node.set_output(0, node.splat(DType::Bool, x.type().dims, 0));
}

constexpr const char* kSameNumbers = "T=num T";
constexpr const char* kSameFloats = "T=float T";
constexpr const char* kSameIntegers = "T=int T";

const OperatorRow kRows[] = {
    {"", "Abs", 1, kLatest, 1, 1, 1, 1, "num", import_unary<Opcode::Abs>, "absolute value"},
    {"", "Acos", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Acos>, "arc cosine"},
    {"", "Acosh", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Acosh>, "inverse hyperbolic cosine"},
    {"", "Add", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_binary<Opcode::Add>, "sum with broadcasting"},
    {"", "And", 1, kLatest, 2, 2, 1, 1, "bool", import_binary<Opcode::And>, "logical and with broadcasting"},
    {"", "Asin", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Asin>, "arc sine"},
    {"", "Asinh", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Asinh>, "inverse hyperbolic sine"},
    {"", "Atan", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Atan>, "arc tangent"},
    {"", "Atanh", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Atanh>, "inverse hyperbolic tangent"},
    {"", "BitShift", 11, kLatest, 2, 2, 1, 1, kSameIntegers, import_bit_shift,
     "shift by bits, either direction"},
    {"", "BitwiseAnd", 18, kLatest, 2, 2, 1, 1, kSameIntegers, import_binary<Opcode::And>, "bitwise and"},
    {"", "BitwiseNot", 18, kLatest, 1, 1, 1, 1, "int", import_unary<Opcode::Not>, "bitwise complement"},
    {"", "BitwiseOr", 18, kLatest, 2, 2, 1, 1, kSameIntegers, import_binary<Opcode::Or>, "bitwise or"},
    {"", "BitwiseXor", 18, kLatest, 2, 2, 1, 1, kSameIntegers, import_binary<Opcode::Xor>,
     "bitwise exclusive or"},
    {"", "Ceil", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Ceil>, "smallest integer not below"},
    {"", "Cos", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Cosine>, "cosine"},
    {"", "Cosh", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Cosh>, "hyperbolic cosine"},
    {"", "Div", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_binary<Opcode::Divide>,
     "quotient with broadcasting; integers truncate"},
    {"", "Equal", 1, 10, 2, 2, 1, 1, "T=bool|i32|i64~any T", import_compare<Direction::Equal>,
     "elementwise equality"},
    {"", "Equal", 11, kLatest, 2, 2, 1, 1, "T=any T", import_compare<Direction::Equal>,
     "elementwise equality"},
    {"", "Erf", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Erf>, "error function"},
    {"", "Exp", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Exponential>, "exponential"},
    {"", "Floor", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Floor>, "largest integer not above"},
    {"", "Greater", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_compare<Direction::Greater>,
     "elementwise lhs > rhs"},
    {"", "GreaterOrEqual", 12, kLatest, 2, 2, 1, 1, kSameNumbers, import_compare<Direction::GreaterOrEqual>,
     "elementwise lhs >= rhs"},
    {"", "IsInf", 10, kLatest, 1, 1, 1, 1, "float", import_is_inf, "test for infinity of either or one sign"},
    {"", "IsNaN", 9, kLatest, 1, 1, 1, 1, "float", import_is_nan, "test for not-a-number"},
    {"", "Less", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_compare<Direction::Less>,
     "elementwise lhs < rhs"},
    {"", "LessOrEqual", 12, kLatest, 2, 2, 1, 1, kSameNumbers, import_compare<Direction::LessOrEqual>,
     "elementwise lhs <= rhs"},
    {"", "Log", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Log>, "natural logarithm"},
    {"", "Max", 1, kLatest, 1, kVariadic, 1, 1, kSameNumbers, import_variadic<Opcode::Maximum>,
     "largest of all inputs with broadcasting; NaN wins"},
    {"", "Mean", 1, kLatest, 1, kVariadic, 1, 1, kSameFloats, import_mean,
     "mean of all inputs with broadcasting", NarrowFloats::Widened},
    {"", "Min", 1, kLatest, 1, kVariadic, 1, 1, kSameNumbers, import_variadic<Opcode::Minimum>,
     "smallest of all inputs with broadcasting; NaN wins"},
    {"", "Mod", 10, kLatest, 2, 2, 1, 1, kSameNumbers, import_mod, "remainder, Python's or C's (fmod)"},
    {"", "Mul", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_binary<Opcode::Multiply>,
     "product with broadcasting"},
    {"", "Neg", 1, kLatest, 1, 1, 1, 1, "num", import_unary<Opcode::Negate>, "negation"},
    {"", "Not", 1, kLatest, 1, 1, 1, 1, "bool", import_unary<Opcode::Not>, "logical complement"},
    {"", "Or", 1, kLatest, 2, 2, 1, 1, "bool", import_binary<Opcode::Or>, "logical or with broadcasting"},
    {"", "Pow", 1, kLatest, 2, 2, 1, 1, "num num", import_pow, "power; the result has the base's dtype"},
    {"", "Reciprocal", 1, kLatest, 1, 1, 1, 1, "float", import_reciprocal, "1 / x"},
    {"", "Round", 11, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::RoundNearestEven>,
     "nearest integer, halves to even"},
    {"", "Sign", 9, kLatest, 1, 1, 1, 1, "num", import_unary<Opcode::Sign>, "-1, 0 or 1"},
    {"", "Sin", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Sine>, "sine"},
    {"", "Sinh", 9, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Sinh>, "hyperbolic sine"},
    {"", "Sqrt", 1, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Sqrt>, "square root"},
    {"", "Sub", 1, kLatest, 2, 2, 1, 1, kSameNumbers, import_binary<Opcode::Subtract>,
     "difference with broadcasting"},
    {"", "Sum", 1, kLatest, 1, kVariadic, 1, 1, kSameFloats, import_variadic<Opcode::Add>,
     "sum of all inputs with broadcasting", NarrowFloats::Widened},
    {"", "Tan", 7, kLatest, 1, 1, 1, 1, "float", import_unary<Opcode::Tan>, "tangent"},
    {"", "Xor", 1, kLatest, 2, 2, 1, 1, "bool", import_binary<Opcode::Xor>,
     "logical exclusive or with broadcasting"},
};

} // namespace

std::span<const OperatorRow> elementwise_operators() {
  return kRows;
}

} // namespace firn::onnx
