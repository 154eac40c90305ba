// The plans of a whole module: what stands in its text, and what the cost model says of the rest.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

// How the instruction is best computed. Nothing if no algorithm with a plan covers it.
std::optional<KernelPlan> choose_plan(const Instruction& instruction, const Options& options);

// A plan for every instruction that can have one. A plan in the text that cannot be read or followed is a
// model error naming the instruction.
Expected<KernelPlans> plan_module(const Module& module, const Options& options);

} // namespace firn::plan
