// See known_ratios.h.
#include "compiler/frontend/onnx/known_ratios.h"

#include "compiler/graph/symbolic_elements.h"

#include <cmath>

namespace firn::onnx {
namespace {

using Ratios = std::vector<Ratio>;

constexpr int64_t kExact = int64_t{1} << 24; // f32 holds every integer up to here
constexpr int kDeepest = 16;                 // floats between integers

bool is_power_of_two(int64_t value) {
  return (value & (value - 1)) == 0;
}

// Whether f32 holds the ratio itself, which then may be computed with further.
bool is_exact(const Ratio& ratio) {
  return is_power_of_two(ratio.denominator);
}

std::optional<Ratio> checked(const IntExpr& numerator, int64_t denominator) {
  bool small = denominator <= kExact && is_safe_dim(numerator) && numerator.upper_bound() <= kExact &&
               numerator.lower_bound() >= -kExact;
  return small ? std::optional(Ratio{numerator, denominator}) : std::nullopt;
}

// A constant as a whole number of a power of two.
std::optional<Ratio> exact_constant(double value) {
  int64_t denominator = 1;
  while (value != std::floor(value) && denominator < kExact) {
    value *= 2;
    denominator *= 2;
  }
  if (value != std::floor(value) || std::abs(value) > static_cast<double>(kExact)) return std::nullopt;
  return Ratio{static_cast<int64_t>(value), denominator};
}

std::optional<Ratio> product(const Ratio& lhs, const Ratio& rhs) {
  if (!is_exact(lhs) || !is_exact(rhs) || lhs.denominator > kExact / rhs.denominator) return std::nullopt;
  return checked(lhs.numerator * rhs.numerator, lhs.denominator * rhs.denominator);
}

// By a constant; its own rounding is the last one.
std::optional<Ratio> quotient(const Ratio& lhs, const Ratio& rhs) {
  if (!is_exact(lhs) || !rhs.numerator.is_constant() || rhs.numerator.value() <= 0) return std::nullopt;
  int64_t by = rhs.numerator.value();
  if (by > kExact / lhs.denominator) return std::nullopt;
  return checked(lhs.numerator * rhs.denominator, lhs.denominator * by);
}

std::optional<Ratio> sum(const Ratio& lhs, const Ratio& rhs, int64_t sign) {
  if (!is_exact(lhs) || !is_exact(rhs)) return std::nullopt;
  int64_t denominator = std::max(lhs.denominator, rhs.denominator);
  return checked(lhs.numerator * (denominator / lhs.denominator) +
                     rhs.numerator * (sign * (denominator / rhs.denominator)),
                 denominator);
}

std::optional<Ratio> unary(Opcode opcode, const Ratio& x) {
  switch (opcode) {
  case Opcode::Floor: return Ratio{floor_div(x.numerator, x.denominator), 1};
  case Opcode::Ceil: return Ratio{ceil_div(x.numerator, x.denominator), 1};
  case Opcode::Negate: return Ratio{IntExpr(0) - x.numerator, x.denominator};
  default: return std::nullopt;
  }
}

std::optional<Ratio> binary(Opcode opcode, const Ratio& lhs, const Ratio& rhs) {
  switch (opcode) {
  case Opcode::Add: return sum(lhs, rhs, 1);
  case Opcode::Subtract: return sum(lhs, rhs, -1);
  case Opcode::Multiply: return product(lhs, rhs);
  case Opcode::Divide: return quotient(lhs, rhs);
  default: return std::nullopt;
  }
}

std::optional<Ratios> constant_ratios(const Literal& literal) {
  if (literal.is_opaque() || literal.num_elements() > KnownInts::kMaxKnown) return std::nullopt;
  Ratios ratios;
  for (int64_t i = 0; i < literal.num_elements(); ++i) {
    auto ratio = exact_constant(literal.get_double(i));
    if (!ratio) return std::nullopt;
    ratios.push_back(std::move(*ratio));
  }
  return ratios;
}

// Integers, exact as floats.
std::optional<Ratios> whole_ratios(const std::vector<IntExpr>& values) {
  Ratios ratios;
  for (const IntExpr& value : values) {
    auto ratio = checked(value, 1);
    if (!ratio) return std::nullopt;
    ratios.push_back(std::move(*ratio));
  }
  return ratios;
}

class Finder {
public:
  explicit Finder(const KnownInts& known) : known_(known) {}

  std::optional<Ratios> find(Value value, int depth = 0) const {
    const Type& type = value.type();
    bool fits = type.is_tensor() && type.is_static() && type.num_elements() <= KnownInts::kMaxKnown;
    if (!fits || (type.dtype != DType::F32 && type.dtype != DType::F64) || depth > kDeepest)
      return std::nullopt;
    const Instruction& made = *value.def;
    if (made.is(Opcode::Constant)) return constant_ratios(*made.literal());
    if (made.num_operands() == 0) return std::nullopt;
    if (made.is(Opcode::Convert) && is_integer(made.operand(0).dtype())) {
      auto values = known_.find(made.operand(0));
      return values ? whole_ratios(*values) : std::nullopt;
    }
    auto first = find(made.operand(0), depth + 1);
    if (!first) return std::nullopt;
    // f64 to f32 keeps what is exact.
    bool same = made.is(Opcode::Reshape) || (made.is(Opcode::Convert) && all_exact(*first));
    if (same) return first;
    if (made.is(Opcode::BroadcastInDim) && first->size() == 1)
      return Ratios(static_cast<size_t>(type.num_elements()), (*first)[0]);
    return computed(made, *first, depth);
  }

private:
  static bool all_exact(const Ratios& ratios) { return std::all_of(ratios.begin(), ratios.end(), is_exact); }

  std::optional<Ratios> computed(const Instruction& made, const Ratios& first, int depth) const {
    if (made.num_operands() > 2) return std::nullopt;
    auto second = made.num_operands() == 2 ? find(made.operand(1), depth + 1) : std::nullopt;
    if (made.num_operands() == 2 && (!second || second->size() != first.size())) return std::nullopt;
    Ratios result;
    for (size_t i = 0; i < first.size(); ++i) {
      auto ratio = second ? binary(made.opcode(), first[i], (*second)[i]) : unary(made.opcode(), first[i]);
      if (!ratio) return std::nullopt;
      result.push_back(std::move(*ratio));
    }
    return result;
  }

  const KnownInts& known_;
};

} // namespace

std::optional<std::vector<Ratio>> known_ratios(const KnownInts& known, Value value) {
  return Finder(known).find(value);
}

std::optional<std::vector<IntExpr>> truncated(const std::vector<Ratio>& ratios) {
  std::vector<IntExpr> values;
  for (const Ratio& ratio : ratios) {
    if (ratio.numerator.lower_bound() >= 0 || ratio.denominator == 1)
      values.push_back(floor_div(ratio.numerator, ratio.denominator));
    else if (ratio.numerator.upper_bound() <= 0)
      values.push_back(ceil_div(ratio.numerator, ratio.denominator));
    else
      return std::nullopt;
  }
  return values;
}

} // namespace firn::onnx
