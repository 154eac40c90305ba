// How walks down decision trees are interleaved: how many go side by side, so that one waits while others go
// on.
#pragma once

#include "compiler/plan/options.h"
#include "compiler/plan/trees/plan.h"

namespace firn::plan {

// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(TreesPlan& plan, const Instruction& composite, const PlanOptions& options);

} // namespace firn::plan
