// The plans of a whole function: those that stand in its text, those of the schedule database, and the cost
// model's for the rest.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// A plan for every instruction that becomes a kernel. A plan in the text that cannot be read or followed is a
// model error naming the instruction; one in the database that cannot be followed is left aside.
Expected<KernelPlans> plan_function(const Function& function, const PlanOptions& options);

// The name of an instruction's plan in errors: "the plan of" its location, or of its result.
std::string place_of(const Instruction& instruction);

} // namespace firn::plan
