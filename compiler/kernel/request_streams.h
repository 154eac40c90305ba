// The order in which code that computes meanwhile asks for the lines of what it will read later.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn::kernel {

// Which of `lines` lines (64 bytes) request number `request` is for, where an iteration makes
// `per_iteration` requests: lines of up to four places take turns. A cache that sees requests follow each
// other in a page runs ahead of them there, and the start of one page is waited for while others' lines come.
IntExpr line_in_streams(const IntExpr& request, int64_t per_iteration, int64_t lines);

} // namespace firn::kernel
