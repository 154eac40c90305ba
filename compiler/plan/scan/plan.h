// Decisions on running values along one dim.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// A walk along one dim with a running value, lanes across other dims where these lie innermost. By rows, all
// of these are walked at each step, and running values are those of the result a step before.
struct ScanPlan {
  Algorithm algorithm = Algorithm::Scan;
  int64_t lanes = 0; // 0: the cost model's
  bool by_rows = false;
  Fields fields();
};

} // namespace firn::plan
