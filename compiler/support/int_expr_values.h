// What an integer expression shows when every value of its symbols is tried: where a symbol occurs more than
// once, as in h - h floordiv 2, intervals of its parts leave more open than is.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn {

struct ValueRange {
  int64_t low, high; // inclusive
};

// The least and the greatest value, INT64_MAX where there is none. Nothing if the symbols have too many
// values to try them all, unless it is one in quotients and remainders by numbers, or numbers grow too large.
std::optional<ValueRange> range_of_values(const IntExpr& expression);

// Bounds of an expression of which the sign counts: as its intervals show it, or else its values.
ValueRange range_of_sign(const IntExpr& expression);
// The larger one or the smaller one of two, which is one of them where the sign of their difference is seen:
// for shapes. min and max are asked too often where kernels are made to try values.
IntExpr decided_max(const IntExpr& lhs, const IntExpr& rhs);
IntExpr decided_min(const IntExpr& lhs, const IntExpr& rhs);

} // namespace firn
