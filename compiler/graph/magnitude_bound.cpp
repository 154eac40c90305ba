// Follows magnitudes through conversions, products, sums and movements.
#include "compiler/graph/magnitude_bound.h"

#include "compiler/graph/fusion.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

constexpr double kUnknown = HUGE_VAL;
constexpr int kMaxVisits = 64;            // expressions are short where their bound matters
constexpr int64_t kMaxElements = 1 << 16; // elements of a constant, at most
// Computed floats may be larger than their bound by rounding, and lose it where they overflow.
constexpr double kMaxFinite = 1e37;

double constant_bound(const Literal& literal) {
  if (!literal.values_may_be_used() || literal.num_elements() > kMaxElements) return kUnknown;
  double bound = 0;
  for (int64_t i = 0; i < literal.num_elements(); ++i) {
    double magnitude = std::abs(literal.get_double(i));
    if (!(magnitude <= kMaxFinite)) return kUnknown;
    bound = std::max(bound, magnitude);
  }
  return bound;
}

// `visits`: the values that may yet be looked at, which bounds the time that shared operands take.
double bound_of(Value value, int& visits) {
  if (--visits < 0) return kUnknown;
  const Instruction& def = *value.def;
  // Conversions to narrower floats overflow.
  if (is_float(value.dtype()) && bit_width(value.dtype()) < 32) return kUnknown;
  if (is_integer(value.dtype()) && !def.is(Opcode::Constant))
    return std::ldexp(1, bit_width(value.dtype()) - is_signed(value.dtype()));
  auto operand = [&](int i) { return bound_of(def.operand(i), visits); };
  auto either = [&](double a, double b) {
    return a < kMaxFinite && b < kMaxFinite ? std::max(a, b) : kUnknown;
  };
  switch (def.opcode()) {
  case Opcode::Constant: return constant_bound(*def.literal());
  case Opcode::Parameter: {
    const Instruction* owner = def.parent() ? def.parent()->owner() : nullptr;
    Value outside = owner && owner->is(Opcode::Fusion) ? outside_of(*owner, value) : Value{};
    return outside ? bound_of(outside, visits) : kUnknown;
  }
  case Opcode::Multiply: return operand(0) * operand(1);
  case Opcode::Add:
  case Opcode::Subtract: return operand(0) + operand(1);
  case Opcode::MultiplyAdd: return operand(0) * operand(1) + operand(2);
  case Opcode::Maximum:
  case Opcode::Minimum: return either(operand(0), operand(1));
  case Opcode::RoundNearestEven: return operand(0) + 1;
  case Opcode::Convert:
  case Opcode::Negate:
  case Opcode::Abs:
  case Opcode::BroadcastInDim:
  case Opcode::Reshape:
  case Opcode::Transpose:
  case Opcode::Slice:
  case Opcode::Reverse:
  case Opcode::Copy: return operand(0);
  default: return kUnknown;
  }
}

} // namespace

double magnitude_bound(Value value) {
  int visits = kMaxVisits;
  double bound = bound_of(value, visits);
  return bound < kMaxFinite ? bound : kUnknown;
}

} // namespace firn
