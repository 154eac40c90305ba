// Decisions on the k first elements of rows.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// The k first elements of each line: the k-th is found by bisection of keys, integers in the order of the
// elements, lanes of them at a time, and those up to it are put in order; or the line is sorted.
struct TopKPlan {
  bool selects = false;
  int64_t lanes = 0; // one of a sort; 0: the cost model's, and whether it selects too
  // Keys of a row that are there at a time, unless k is near: more bisections of fewer keys cost more.
  int64_t held = 2048;
  int64_t vectors = 8; // vectors of keys that a bisection counts side by side, at most
  Fields fields();
};

} // namespace firn::plan
