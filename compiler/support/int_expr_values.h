// The range of an integer expression, found by trying every value of its symbols: if a symbol occurs more
// than once, as in h - h floordiv 2, interval arithmetic gives wider bounds than there are.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn {

struct ValueRange {
  int64_t low, high; // inclusive
};

// The least and the greatest value, INT64_MAX where there is none. Nothing if the symbols have too many
// values to try them all (one symbol in quotients and remainders by numbers may have any), or if numbers grow
// too large.
std::optional<ValueRange> range_of_values(const IntExpr& expression);

// Bounds of an expression whose sign counts: by interval arithmetic if that shows the sign, else by its
// values.
ValueRange range_of_sign(const IntExpr& expression);
// max and min for shapes: one of the two operands if the sign of their difference is seen. Plain max and min
// do not try values, because kernels ask them too often.
IntExpr decided_max(const IntExpr& lhs, const IntExpr& rhs);
IntExpr decided_min(const IntExpr& lhs, const IntExpr& rhs);

} // namespace firn
