// Prefetches spread over the iterations of the loops in which a kernel spends its time.
#pragma once

#include "compiler/kernel/kernel.h"

#include <optional>

namespace firn::kernel {

// Where prefetches go, and which requests an iteration makes of those for the memory ahead.
struct PrefetchSpread {
  Block* body = nullptr;
  IntExpr first;                     // request of an iteration
  int64_t lines_each = 0, lines = 0; // by an iteration, and by all
};

// A place from which the kernel asks for `lines` lines (64 bytes), a few at a time; nothing if its loops have
// too few iterations.
std::optional<PrefetchSpread> spread_prefetches(Kernel& kernel, int64_t lines);

// Has the kernel prefetch so into the second cache level, from where its new last parameter points.
void insert_prefetches(Kernel& kernel, const PrefetchSpread& spread);

} // namespace firn::kernel
