// The fields of the plans: what stands in texts, in this order, and what it means.
#include "compiler/plan/fused_spatial_sum/plan.h"

namespace firn::plan {

Fields FusedSpatialSumPlan::fields() {
  return {number("accumulators", accumulators, one_of({1, 2, 4, 8, 16}), "partial sums of the tiles' sums")};
}

} // namespace firn::plan
