// The plans of a whole module: what stands in its text, what the schedule database says, and what the cost
// model says of the rest.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// A plan for every instruction that becomes a kernel. A plan in the text that cannot be read or followed is a
// model error naming the instruction; one in the database that cannot be followed is left aside.
Expected<KernelPlans> plan_module(const Module& module, const PlanOptions& options);

} // namespace firn::plan
