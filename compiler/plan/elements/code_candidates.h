// Other code for the same elements, and what it is predicted to take.
#pragma once

#include "compiler/plan/elements/plan.h"
#include "compiler/plan/planning_context.h"

#include <vector>

namespace firn::plan {

// Code of fewer lanes, of other numbers of bodies per iteration, and of other accumulators.
std::vector<ElementCode> other_codes(const ElementCode& chosen);

// Cycles of one run: those that the instruction takes by its work (cost_model.h) if lanes are all that a
// register has, more for fewer lanes, and the ends of loops.
double code_cycles(const ElementCode& code, const Instruction& instruction, const PlanningContext& context);

} // namespace firn::plan
