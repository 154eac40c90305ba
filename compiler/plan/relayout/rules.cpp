// The rules of copies by strides.
#include "compiler/plan/relayout/relayout.h"
#include "compiler/plan/variations.h"

namespace firn::plan {
namespace {

class RelayoutRules final : public RulesByLanes<RelayoutPlan> {
public:
  std::string applies(const Instruction& instruction, const PlanningContext& context) const override {
    const Machine& target = context.options.target;
    auto relayout = find_relayout(instruction, target);
    return relayout && relayout->is_profitable(target) ? "" : "loops over elements are as fast";
  }
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(RelayoutPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options.target);
  }
};

} // namespace

const AlgorithmRules& relayout_rules() {
  static const RelayoutRules rules;
  return rules;
}

} // namespace firn::plan
