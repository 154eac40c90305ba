// Decisions on copies and transposes by strides.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// A copy or transpose by strides. Where what lies together differs between the sides, squares of so many
// elements high and wide pass through registers.
struct RelayoutPlan {
  int64_t lanes = 0; // elements of a vector, and of a side of a square; 0: the cost model chooses
  Fields fields();
};

} // namespace firn::plan
