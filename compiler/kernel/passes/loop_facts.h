// Facts about a kernel's loops that are known before it runs: their trip counts, and which of them it spends
// its time in.
#pragma once

#include "compiler/kernel/kernel.h"

#include <vector>

namespace firn::kernel {

// A loop around a block, reduced to the iterations that reach the block. The induction variable is `first + n
// * step` in iteration n of them.
struct LoopOnPath {
  SymbolRef symbol;
  int64_t first = 0, step = 1, count = 0;
  Block* body = nullptr;
};

// Iterations; 0 where the bounds vary.
int64_t trip_count(const Op& loop);

// The loops around the block in which the kernel runs most multiply-adds, outermost first, from the parallel
// loop on. Where a branch on the way compares indices that depend on one of them alone, that loop has only
// the iterations in which the branch leads to the block, if these follow one another. Empty if the parallel
// loop's count varies.
std::vector<LoopOnPath> find_hot_nest(Kernel& kernel);

} // namespace firn::kernel
