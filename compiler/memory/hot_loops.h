// Finds the nest of loops in which a kernel spends its time, and spreads prefetches over its iterations.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::memory {

// Has the kernel prefetch `lines` lines (64 bytes) into the second cache level, in order and a few at a time,
// from where its new last parameter points. False, with nothing changed, if its loops have too few
// iterations.
bool prefetch_in_hot_loops(kernel::Kernel& kernel, int64_t lines);

} // namespace firn::memory
