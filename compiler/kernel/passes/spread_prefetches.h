// Prefetches spread over the iterations of the loops in which a kernel spends its time.
#pragma once

#include "compiler/kernel/kernel.h"

#include <optional>

namespace firn::kernel {

// Where prefetches go, and from where in the memory ahead they ask.
struct PrefetchSpread {
  Block* body = nullptr;
  IntExpr first;          // byte of the first line that an iteration asks for
  int64_t lines_each = 0; // by an iteration
};

// A place from which the kernel asks for `lines` lines (64 bytes) in order and a few at a time; nothing if
// its loops have too few iterations.
std::optional<PrefetchSpread> spread_prefetches(Kernel& kernel, int64_t lines);

// Has the kernel prefetch so into the second cache level, from where its new last parameter points.
void insert_prefetches(Kernel& kernel, const PrefetchSpread& spread);

} // namespace firn::kernel
