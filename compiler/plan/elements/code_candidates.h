// Other code for the same elements, and what it is predicted to take.
#pragma once

#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/elements/plan.h"

namespace firn::plan {

// Code of fewer lanes, of other numbers of bodies per iteration, and of other accumulators.
std::vector<ElementCode> other_codes(const ElementCode& chosen);

// Cycles of one run: those that the instruction takes by its work (cost_model.h) if lanes are all that a
// register has, more for fewer lanes, and the ends of loops.
double code_cycles(const ElementCode& code, const Instruction& instruction, const PlanningContext& context);

// The rules of plans with an ElementCode `code`.
template <class Plan> class RulesByCode : public RulesOf<Plan> {
protected:
  std::vector<Plan> others(const Plan& preferred, const Instruction&, const PlanningContext&,
                           size_t) const override {
    std::vector<Plan> all;
    for (const ElementCode& code : other_codes(preferred.code)) {
      all.push_back(preferred);
      all.back().code = code;
    }
    return all;
  }
  double cycles(const Plan& plan, const Plan&, const Instruction& instruction,
                const PlanningContext& context) const override {
    return code_cycles(plan.code, instruction, context);
  }
};

} // namespace firn::plan
