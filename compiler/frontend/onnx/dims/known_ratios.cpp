// Walks from a float back to the integers and constants that it is made of.
#include "compiler/frontend/onnx/dims/known_ratios.h"

#include "compiler/graph/symbolic_elements.h"
#include "compiler/support/int_expr_values.h"

#include <cmath>
#include <map>
#include <numeric>

namespace firn::onnx {
namespace {

using Ratios = std::vector<Ratio>;

constexpr int64_t kExact = int64_t{1} << 24; // f32 holds every integer up to here
constexpr int kDeepest = 16;                 // depth of chains of float ops

bool is_power_of_two(int64_t value) {
  return (value & (value - 1)) == 0;
}

// Whether f32 holds the ratio without rounding, so that more ops may follow.
bool is_exact(const Ratio& ratio) {
  return is_power_of_two(ratio.denominator);
}

// Whether products of two such expressions, or of one and a denominator, stay far below 2^62, where IntExpr
// ends.
bool has_small_numbers(const IntExpr& value) {
  bool small = std::abs(value.constant_part()) <= kExact;
  for (const IntExpr::Term& term : value.terms()) small &= std::abs(term.coefficient) <= kExact;
  return small;
}

// The ratio, unless f32 may not hold its numerator or its denominator, or later products may overflow.
std::optional<Ratio> checked(const IntExpr& numerator, int64_t denominator) {
  bool small = denominator <= kExact && is_safe_dim(numerator) && has_small_numbers(numerator) &&
               numerator.upper_bound() <= kExact && numerator.lower_bound() >= -kExact;
  return small ? std::optional(Ratio{numerator, denominator}) : std::nullopt;
}

// A constant as an integer over a power of two.
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

// Division by a constant. The quotient may be rounded, but nothing before it.
std::optional<Ratio> quotient(const Ratio& lhs, const Ratio& rhs) {
  if (!is_exact(lhs) || !is_exact(rhs) || !rhs.numerator.is_constant() || rhs.numerator.value() <= 0)
    return std::nullopt;
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

// The larger or smaller ratio: rounding does not change which one it is.
std::optional<Ratio> extreme(const Ratio& lhs, const Ratio& rhs, bool larger) {
  int64_t denominator =
      std::lcm(lhs.denominator, rhs.denominator); // below 2^48; checked() refuses large ones
  IntExpr left = lhs.numerator * (denominator / lhs.denominator),
          right = rhs.numerator * (denominator / rhs.denominator);
  return checked(larger ? decided_max(left, right) : decided_min(left, right), denominator);
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
  case Opcode::Maximum: return extreme(lhs, rhs, /*larger=*/true);
  case Opcode::Minimum: return extreme(lhs, rhs, /*larger=*/false);
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

// Integers as ratios, if floats hold them exactly.
std::optional<Ratios> whole_ratios(const std::vector<IntExpr>& values) {
  Ratios ratios;
  for (const IntExpr& value : values) {
    auto ratio = checked(value, 1);
    if (!ratio) return std::nullopt;
    ratios.push_back(std::move(*ratio));
  }
  return ratios;
}

bool moves_elements(Opcode opcode) {
  switch (opcode) {
  case Opcode::Reshape:
  case Opcode::BroadcastInDim:
  case Opcode::Concatenate:
  case Opcode::Slice:
  case Opcode::Reverse:
  case Opcode::Transpose: return true;
  default: return false;
  }
}

// The ratios that an op which moves elements gives for its operands' ratios.
std::optional<Ratios> moved(const Instruction& made, const std::vector<Ratios>& operands) {
  std::vector<std::vector<IntExpr>> numerators, denominators;
  for (const Ratios& operand : operands) {
    numerators.emplace_back();
    denominators.emplace_back();
    for (const Ratio& ratio : operand) {
      numerators.back().push_back(ratio.numerator);
      denominators.back().push_back(ratio.denominator);
    }
  }
  auto above = compute_elements(made, numerators), below = compute_elements(made, denominators);
  if (!above || !below) return std::nullopt;
  Ratios result;
  for (size_t i = 0; i < above->size(); ++i) result.push_back({(*above)[i], (*below)[i].value()});
  return result;
}

std::optional<Ratios> elementwise(const Instruction& made, const std::vector<Ratios>& operands) {
  auto count = static_cast<size_t>(made.type().num_elements());
  bool fits = is_elementwise(made.opcode()) && operands.size() <= 2;
  for (const Ratios& operand : operands) fits = fits && operand.size() == count;
  if (!fits) return std::nullopt;
  Ratios result;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    auto ratio = operands.size() == 2 ? binary(made.opcode(), operands[0][i], operands[1][i])
                                      : unary(made.opcode(), operands[0][i]);
    if (!ratio) return std::nullopt;
    result.push_back(std::move(*ratio));
  }
  return result;
}

// The largest or smallest of all elements, of which there is at least one.
std::optional<Ratios> reduced(const Instruction& made, const Ratios& from) {
  auto reducer = made.num_operands() == 2 ? simple_reducer(made) : std::nullopt;
  bool chooses = reducer == Opcode::Maximum || reducer == Opcode::Minimum;
  const LiteralRef& initial = made.operand(1).def->literal();
  if (!chooses || !initial || !std::isinf(initial->get_double(0)) || made.type().num_elements() != 1 ||
      from.empty())
    return std::nullopt;
  Ratio result = from[0];
  for (const Ratio& each : from) {
    auto next = binary(*reducer, result, each);
    if (!next) return std::nullopt;
    result = std::move(*next);
  }
  return Ratios{result};
}

class Finder {
public:
  explicit Finder(const KnownInts& known) : known_(known) {}

  std::optional<Ratios> find(Value value, int depth = 0) {
    const Type& type = value.type();
    bool fits = type.is_tensor() && type.is_static() && type.num_elements() <= KnownInts::kMaxKnown;
    if (!fits || value.index != 0 || (type.dtype != DType::F32 && type.dtype != DType::F64) ||
        depth > kDeepest)
      return std::nullopt;
    auto found = found_.find(value.def);
    if (found != found_.end()) return found->second;
    auto ratios = of(*value.def, depth);
    found_[value.def] = ratios;
    return ratios;
  }

private:
  std::optional<Ratios> of(const Instruction& made, int depth) {
    if (made.is(Opcode::Constant)) return constant_ratios(*made.literal());
    if (made.num_operands() == 0) return std::nullopt;
    if (made.is(Opcode::Convert) && is_integer(made.operand(0).dtype())) {
      auto values = known_.find(made.operand(0));
      return values ? whole_ratios(*values) : std::nullopt;
    }
    std::vector<Ratios> operands;
    for (int i = 0; i < (made.is(Opcode::Reduce) ? 1 : made.num_operands()); ++i) {
      auto operand = find(made.operand(i), depth + 1);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    return computed(made, operands);
  }

  static std::optional<Ratios> computed(const Instruction& made, const std::vector<Ratios>& operands) {
    if (moves_elements(made.opcode())) return moved(made, operands);
    if (made.is(Opcode::Reduce)) return reduced(made, operands[0]);
    if (!made.is(Opcode::Convert)) return elementwise(made, operands);
    // A conversion to another float keeps exact values.
    bool exact = std::all_of(operands[0].begin(), operands[0].end(), is_exact);
    return exact ? std::optional(operands[0]) : std::nullopt;
  }

  const KnownInts& known_;
  std::map<const Instruction*, std::optional<Ratios>> found_;
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
