// The order in which a kernel, while it computes, requests the cache lines that it or later kernels read.
#pragma once

#include "compiler/support/int_expr.h"

namespace firn::kernel {

// The number of the line (64 bytes), out of `lines`, that request number `request` is for if an iteration
// makes `per_iteration` requests. Requests take turns in up to four streams: a cache that sees requests
// follow each other in a page fetches ahead of them, and the wait for the start of one page overlaps with
// lines of the others.
IntExpr line_in_streams(const IntExpr& request, int64_t per_iteration, int64_t lines);

} // namespace firn::kernel
