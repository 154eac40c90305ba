// Decisions on sums over positions that the kernel of a convolution leaves.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// The producer's kernel stores the sum of every tile; a small kernel adds these.
struct FusedSpatialSumPlan {
  int64_t accumulators = 4; // additions side by side: shorter chains have smaller errors
  Fields fields();
};

} // namespace firn::plan
