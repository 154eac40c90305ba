// Shared by the parts of the integer expressions' implementation: order and bounds of canonical forms, and
// the rules that put quotients and remainders back together. Only int_expr*.cpp include it.
#pragma once

#include "compiler/support/diagnostic.h"
#include "compiler/support/int_expr.h"

#include <algorithm>

namespace firn::int_form {

// Bounds beyond these are infinite.
inline constexpr int64_t kInfinity = INT64_MAX;
// Coefficients stay within +-kLimit, so that sums of two never overflow.
inline constexpr int64_t kLimit = int64_t(1) << 62;

struct Interval {
  int64_t low, high;
};

inline bool fits(__int128 value) {
  return value <= kLimit && value >= -kLimit;
}
inline int64_t checked(__int128 value) {
  FIRN_CHECK(fits(value), "integer expression beyond 2^62");
  return static_cast<int64_t>(value);
}

inline int64_t floor_divide(int64_t lhs, int64_t rhs) {
  int64_t quotient = lhs / rhs;
  return lhs % rhs != 0 && (lhs < 0) != (rhs < 0) ? quotient - 1 : quotient;
}
inline int64_t floor_remainder(int64_t lhs, int64_t rhs) {
  return lhs - floor_divide(lhs, rhs) * rhs;
}

// Total orders: negative, zero, positive. Expressions of one form compare equal.
int compare(const IntAtom& lhs, const IntAtom& rhs);
int compare(const IntExpr& lhs, const IntExpr& rhs);
int compare_atoms(const std::vector<AtomRef>& lhs, const std::vector<AtomRef>& rhs);

Interval bounds(const IntExpr& expression);

// The expression of one atom, not simplified.
IntExpr atom_expr(IntAtom::Kind kind, const IntExpr& lhs, const IntExpr& rhs);
// The only atom of an expression that is one atom with coefficient 1; null otherwise.
const IntAtom* single_atom(const IntExpr& expression);

// The product of two terms, its atoms in order.
IntExpr::Term product(const IntExpr::Term& lhs, const IntExpr::Term& rhs);
void sort_and_merge(std::vector<IntExpr::Term>& terms);
// Joins one remainder with its quotient; false when no pair is left. Keeps `terms` sorted and merged.
bool recombine(int64_t& constant, std::vector<IntExpr::Term>& terms);

} // namespace firn::int_form
