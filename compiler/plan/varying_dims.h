// Instructions whose dims vary from run to run within bounds: which algorithms take such dims, and with which
// plans. Decisions are made at the bounds, except for Winograd's algorithm: over all sizes (cost_model.h).
//
// Strides and ends of loops follow the extents of a run. Rows that whole tiles leave take a lower tile;
// elements that whole vectors leave take a ladder of shorter vectors.
#pragma once

#include "compiler/plan/contraction_plan.h"

namespace firn::plan {

// How an instruction with dims that vary is computed; nothing if no algorithm takes them.
std::optional<KernelPlan> choose_varying_plan(const Instruction& instruction,
                                              const ContractionContext& context);
// Completes a plan written for such an instruction. Says why it cannot be followed; empty: it can.
std::string complete_varying(KernelPlan& plan, const Instruction& instruction,
                             const ContractionContext& context);

} // namespace firn::plan
