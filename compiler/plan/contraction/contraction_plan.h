// Plans of dots and convolutions by register tiles.
#pragma once

#include "compiler/plan/contraction/computed_convolution.h"
#include "compiler/plan/contraction/dot.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/contraction/planar.h"
#include "compiler/plan/planning_context.h"

namespace firn::plan {

// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(ContractionPlan& plan, const Instruction& instruction, const PlanningContext& context);

} // namespace firn::plan
