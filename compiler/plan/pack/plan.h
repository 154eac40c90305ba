// Decisions on kernels that pack constants where the model runs.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// A constant of @prepare, copied into its packed form.
struct PackPlan {
  int64_t lanes = 0;   // elements of a vector; 0: the cost model chooses
  bool in_f64 = false; // sums of a transform are f64, and rounded once
  Fields fields();
};

} // namespace firn::plan
