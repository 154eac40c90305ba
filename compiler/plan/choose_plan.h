// The plan of one instruction: the rows of algorithms.def are asked for candidates, in the order of their
// precedence.
#pragma once

#include "compiler/plan/planning_context.h"

#include <optional>

namespace firn::plan {

// How the instruction is best computed, Winograd's algorithm aside, which is chosen for all convolutions
// together. If PlanOptions::packed_as is set, constants are read as that plan packs them, with tiles of this
// CPU's own. Nothing if it is no kernel, or if there is none for it.
std::optional<KernelPlan> choose_plan(const Instruction& instruction, const PlanningContext& context);

// The plan that a request is of the instruction: what it gives, and in its holes what the cost model says.
// The error says why it cannot be followed.
Expected<KernelPlan> complete(const PlanRequest& request, const Instruction& instruction,
                              const PlanningContext& context);
// Completes a plan of any algorithm in place. Says why the plan cannot be followed; empty: it can.
std::string complete(KernelPlan& plan, const Instruction& instruction, const PlanningContext& context);

} // namespace firn::plan
