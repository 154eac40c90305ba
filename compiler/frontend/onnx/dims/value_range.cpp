// See value_range.h. Intervals through the ops that exporters compute extents with.
#include "compiler/frontend/onnx/dims/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace firn::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kDeepest = 32;
constexpr int64_t kMaxConstants = 4096;

ValueRange of_dtype(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (is_integer(dtype) && bit_width(dtype) <= 32) {
    double half = std::ldexp(1.0, bit_width(dtype) - 1);
    return is_unsigned(dtype) ? ValueRange{0, 2 * half - 1} : ValueRange{-half, half - 1};
  }
  return {-kInfinity, kInfinity};
}

ValueRange within(ValueRange range, ValueRange limits) {
  return {std::clamp(range.min, limits.min, limits.max), std::clamp(range.max, limits.min, limits.max)};
}

// The range of the four products or quotients of ends; all numbers if one of these is NaN.
ValueRange of_ends(ValueRange a, ValueRange b, double (*combine)(double, double)) {
  double ends[] = {combine(a.min, b.min), combine(a.min, b.max), combine(a.max, b.min),
                   combine(a.max, b.max)};
  for (double end : ends)
    if (std::isnan(end)) return {-kInfinity, kInfinity};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

// Bits of a float's significand, the hidden one included.
int precision_of(DType dtype) {
  switch (dtype) {
  case DType::F64: return 53;
  case DType::F32: return 24;
  case DType::F16: return 11;
  case DType::BF16: return 8;
  default: return 2;
  }
}

// The end of a range after rounding to the type, upwards or downwards. An end that the type does not hold
// moves by one more unit, as products and sums may be fused.
double rounded_end(double end, DType dtype, bool up) {
  if (end == 0 || !std::isfinite(end)) return end;
  double unit = std::ldexp(1.0, std::max(std::ilogb(end) + 1 - precision_of(dtype), -1022));
  double units = end / unit;
  if (units == std::floor(units)) return end;
  return (up ? std::ceil(units) + 1 : std::floor(units) - 1) * unit;
}

class Ranges {
public:
  explicit Ranges(const NodeContext& node) : node_(node) {}

  ValueRange of(Value value, int depth = 0) {
    if (depth > kDeepest || !value.type().is_tensor() || value.dtype() == DType::String ||
        is_complex(value.dtype()))
      return {-kInfinity, kInfinity};
    auto found = found_.find({value.def, value.index});
    if (found != found_.end()) return found->second;
    ValueRange range = computed(value, depth);
    found_[{value.def, value.index}] = range;
    return range;
  }

private:
  ValueRange computed(Value value, int depth) {
    ValueRange all = of_dtype(value.dtype());
    if (auto literal = node_.constant(value)) return of_literal(*literal, all);
    if (auto known = node_.known_ints(value); known && !known->empty()) {
      ValueRange range{kInfinity, -kInfinity};
      for (const IntExpr& each : *known) {
        range.min = std::min(range.min, static_cast<double>(each.lower_bound()));
        range.max = std::max(range.max, static_cast<double>(each.upper_bound()));
      }
      return range;
    }
    ValueRange range = of_op(*value.def, value.index, depth + 1);
    if (is_float(value.dtype()))
      range = {rounded_end(range.min, value.dtype(), false), rounded_end(range.max, value.dtype(), true)};
    // A value that overflows its type wraps, and may be any number.
    return range.min < all.min || range.max > all.max ? all : range;
  }

  static ValueRange of_literal(const Literal& literal, ValueRange all) {
    if (literal.num_elements() == 0 || literal.num_elements() > kMaxConstants) return all;
    ValueRange range{kInfinity, -kInfinity};
    for (int64_t i = 0; i < literal.num_elements(); ++i) {
      double x = literal.get_double(i);
      if (std::isnan(x)) return all;
      range = {std::min(range.min, x), std::max(range.max, x)};
    }
    return range;
  }

  static ValueRange of_extent(const Dim& dim) {
    return {static_cast<double>(std::max<int64_t>(0, dim.extent.lower_bound())),
            static_cast<double>(dim.extent.upper_bound())};
  }

  ValueRange of_op(const Instruction& op, int result, int depth) {
    ValueRange all = of_dtype(op.type(result).dtype);
    auto operand = [&](int i) { return of(op.operand(i), depth); };
    auto each = [&](double (*f)(double)) {
      ValueRange x = operand(0);
      return ValueRange{f(x.min), f(x.max)};
    };
    switch (op.opcode()) {
    case Opcode::DimSize:
      return of_extent(op.operand(0).type().dims[static_cast<size_t>(op.attributes().integer("dim"))]);
    case Opcode::NonZero: return result == 1 ? of_extent(op.type(0).dims[1]) : all;
    case Opcode::ArgReduce: {
      double extent =
          of_extent(op.operand(0).type().dims[static_cast<size_t>(op.attributes().integer("dim"))]).max;
      return {0, std::max(0.0, extent - 1)};
    }
    case Opcode::Reshape:
    case Opcode::BroadcastInDim:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::SymbolicSlice:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Copy: return operand(0);
    case Opcode::Concatenate: {
      ValueRange range = operand(0);
      for (int i = 1; i < op.num_operands(); ++i) range = either(range, operand(i));
      return range;
    }
    case Opcode::Convert:
      return is_float(op.type().dtype) || !is_float(op.operand(0).dtype()) ? operand(0) : each(std::trunc);
    case Opcode::Floor: return each(std::floor);
    case Opcode::Ceil: return each(std::ceil);
    case Opcode::RoundNearestEven: return each(std::nearbyint);
    case Opcode::Logistic: return {0, 1};
    case Opcode::Tanh: return {-1, 1};
    case Opcode::Negate: {
      ValueRange x = operand(0);
      return {-x.max, -x.min};
    }
    case Opcode::Abs: {
      ValueRange x = operand(0);
      return {0, std::max(std::fabs(x.min), std::fabs(x.max))};
    }
    case Opcode::Clamp: return within(operand(1), {operand(0).min, operand(2).max});
    case Opcode::Select: return either(operand(1), operand(2));
    case Opcode::Reduce: return of_reduce(op, depth);
    default: return op.num_operands() == 2 ? of_pair(op, operand(0), operand(1)) : all;
    }
  }

  static ValueRange either(ValueRange a, ValueRange b) {
    return {std::min(a.min, b.min), std::max(a.max, b.max)};
  }

  static ValueRange of_pair(const Instruction& op, ValueRange a, ValueRange b) {
    ValueRange all = of_dtype(op.type().dtype);
    switch (op.opcode()) {
    case Opcode::Minimum: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Opcode::Maximum: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Opcode::Add: return {a.min + b.min, a.max + b.max};
    case Opcode::Subtract: return {a.min - b.max, a.max - b.min};
    case Opcode::Multiply: return of_ends(a, b, [](double x, double y) { return x * y; });
    case Opcode::Divide:
      return b.min > 0 ? rounded(op, of_ends(a, b, [](double x, double y) { return x / y; })) : all;
    case Opcode::Remainder: {
      double largest = std::max(std::fabs(b.min), std::fabs(b.max));
      return {a.min >= 0 ? 0 : -largest, a.max <= 0 ? 0 : largest};
    }
    default: return all;
    }
  }

  static ValueRange rounded(const Instruction& op, ValueRange range) {
    return is_float(op.type().dtype) ? range : ValueRange{std::trunc(range.min), std::trunc(range.max)};
  }

  ValueRange of_reduce(const Instruction& op, int depth) {
    auto reducer = op.num_operands() == 2 ? simple_reducer(op) : std::nullopt;
    ValueRange all = of_dtype(op.type().dtype);
    if (!reducer) return all;
    ValueRange x = of(op.operand(0), depth), initial = of(op.operand(1), depth);
    if (*reducer == Opcode::Maximum || *reducer == Opcode::Minimum) {
      // The initial value is left out: it is the result only if there are no elements, and no extent is made
      // of that.
      return of(op.operand(0), depth);
    }
    if (*reducer != Opcode::Add) return all;
    double count = 1;
    for (int64_t dim : op.attributes().ints("dims"))
      count *= of_extent(op.operand(0).type().dims[static_cast<size_t>(dim)]).max;
    double min = initial.min + count * std::min(0.0, x.min), max = initial.max + count * std::max(0.0, x.max);
    // Each addition rounds.
    double error = is_float(op.type().dtype) ? count * std::ldexp(1.0, -precision_of(op.type().dtype)) : 0;
    return {min - std::fabs(min) * error, max + std::fabs(max) * error};
  }

  const NodeContext& node_;
  std::map<std::pair<const Instruction*, int>, ValueRange> found_;
};

} // namespace

ValueRange range_of(const NodeContext& node, Value value) {
  ValueRange range = Ranges(node).of(value);
  return std::isnan(range.min) || std::isnan(range.max) ? ValueRange{-kInfinity, kInfinity} : range;
}

std::optional<int64_t> max_of(const NodeContext& node, Value value) {
  double max = range_of(node, value).max;
  if (max >= 0x1p31) return std::nullopt;
  return static_cast<int64_t>(std::floor(std::max(0.0, max)));
}

} // namespace firn::onnx
