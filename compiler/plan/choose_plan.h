// The plan of one instruction: the order in which algorithms are asked whether they cover it, best first.
#pragma once

#include "compiler/plan/contraction_plan.h"

namespace firn::plan {

// How the instruction is best computed, Winograd's algorithm aside, which is chosen for all convolutions
// together. Nothing if it is no kernel, or if there is none for it.
std::optional<KernelPlan> choose_plan(const Instruction& instruction, const ContractionContext& context);

// Chooses a plan if ContractionContext::packed_as says how constants are packed: its algorithm, with tiles of
// this CPU's own.
std::optional<KernelPlan> choose_packed_plan(const Instruction& instruction,
                                             const ContractionContext& context);

// The plan that a request is of the instruction: what it gives, and in its holes what the cost model says.
// The error says why it cannot be followed.
Expected<KernelPlan> complete(const PlanRequest& request, const Instruction& instruction,
                              const ContractionContext& context);
// Completes a plan of any family in place. Says why the plan cannot be followed; empty: it can.
std::string complete(KernelPlan& plan, const Instruction& instruction, const ContractionContext& context);

// The one kernel that an opcode has, where there are no others to choose from.
std::optional<FixedPlan::Algorithm> fixed_algorithm(const Instruction& instruction);

} // namespace firn::plan
