// The rules of loops over elements.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/elements/code_candidates.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/varying_dims.h"

namespace firn::plan {
namespace {

class ElementsRules final : public RulesOf<ElementsPlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return has_varying_element_form(instruction) ? "" : "its elements' code wants extents that do not vary";
  }
  std::string complete(ElementsPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options.target);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const ElementsPlan chosen = *all[0].plan.get_if<ElementsPlan>();
    all[0].cycles = code_cycles(chosen.code, instruction, context);
    for (const ElementCode& code : other_codes(chosen.code)) {
      ElementsPlan other = chosen;
      other.code = code;
      consider(other, code_cycles(code, instruction, context), instruction, context, all);
    }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& elements_rules() {
  static const ElementsRules rules;
  return rules;
}

} // namespace firn::plan
