// Algorithms that leave nothing to decide.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Kernels that leave nothing to choose but themselves.
struct FixedPlan {
  Algorithm algorithm = Algorithm::Sort;
  Fields fields() { return {}; }
};

} // namespace firn::plan
