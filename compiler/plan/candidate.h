// A plan to choose from.
#pragma once

#include "compiler/plan/kernel_plan.h"

#include <string>

namespace firn::plan {

// A complete plan that can be followed.
struct Candidate {
  KernelPlan plan;
  double cycles = 0;     // a run is predicted to take
  std::string note = {}; // why it was not taken, or what else is known of it
};

} // namespace firn::plan
