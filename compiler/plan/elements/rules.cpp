// The rules of loops over elements.
#include "compiler/plan/elements/code_candidates.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/varying_dims.h"

namespace firn::plan {
namespace {

class ElementsRules final : public RulesByCode<ElementsPlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return has_varying_element_form(instruction) ? "" : "its elements' code wants extents that do not vary";
  }
  std::string complete(ElementsPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options.target);
  }
};

} // namespace

const AlgorithmRules& elements_rules() {
  static const ElementsRules rules;
  return rules;
}

} // namespace firn::plan
