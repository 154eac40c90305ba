// Division of integer expressions that leaves no rest.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn {

// The quotient q with q * part = whole: seq for 4*batch*seq by 4*batch. `part` is never 0. Nothing if
// division term by term, as of polynomials, leaves a rest.
std::optional<IntExpr> exact_quotient(const IntExpr& whole, const IntExpr& part);

} // namespace firn
