// Division of integer expressions that leaves no rest.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn {

// What `part`, which is never 0, is multiplied by to give `whole`: 4*batch*seq is 4*batch times seq. Nothing
// where division term by term, as of polynomials, leaves a rest.
std::optional<IntExpr> exact_quotient(const IntExpr& whole, const IntExpr& part);

} // namespace firn
