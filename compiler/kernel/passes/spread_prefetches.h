// Prefetches spread over the iterations of the loops in which a kernel spends its time.
#pragma once

#include "compiler/kernel/kernel.h"

#include <optional>

namespace firn::kernel {

// The block that prefetches go into, and the requests that an iteration of it makes.
struct PrefetchSpread {
  Block* body = nullptr;
  IntExpr first;                     // number of an iteration's first request
  int64_t lines_each = 0, lines = 0; // requested by one iteration, and by all
};

// A block in which the kernel can ask for `lines` lines (64 bytes), a few at a time; nothing if its loops
// have too few iterations.
std::optional<PrefetchSpread> spread_prefetches(Kernel& kernel, int64_t lines);

// Adds these prefetches to the kernel; they fetch from where its new last parameter points, into the second
// cache level.
void insert_prefetches(Kernel& kernel, const PrefetchSpread& spread);

} // namespace firn::kernel
