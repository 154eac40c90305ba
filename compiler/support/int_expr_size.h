// The size of integer expressions. Operations on them take time in the size of the tree they are written out
// as, which shared parts may double from one expression to the next.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn {

// Whether the expression has more than `limit` terms and atoms, written out as a tree.
bool is_larger_than(const IntExpr& expression, size_t limit);

} // namespace firn
