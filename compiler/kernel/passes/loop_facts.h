// What is known of a kernel's loops before it runs: how often they turn, and in which of them it spends its
// time.
#pragma once

#include "compiler/kernel/kernel.h"

#include <vector>

namespace firn::kernel {

// A loop on the way to a block inside it: the iterations that come there. The induction variable is
// `first + n * step` in iteration n of them.
struct LoopOnPath {
  SymbolRef symbol;
  int64_t first = 0, step = 1, count = 0;
  Block* body = nullptr;
};

// Iterations; 0 where the bounds vary.
int64_t trip_count(const Op& loop);

// The loops around the block in which the kernel runs most multiply-adds, outermost first, from the parallel
// loop on. Where a branch on the way compares indices that depend on one of them alone, that loop has the
// iterations in which the branch leads there, if these follow one another. None where the parallel loop's
// count varies.
std::vector<LoopOnPath> find_hot_nest(Kernel& kernel);

} // namespace firn::kernel
