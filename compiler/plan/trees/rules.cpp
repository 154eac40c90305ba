// The rules of walks down decision trees.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/trees/trees.h"

namespace firn::plan {
namespace {

class TreesRules final : public RulesOf<TreesPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(TreesPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
};

} // namespace

const AlgorithmRules& trees_rules() {
  static const TreesRules rules;
  return rules;
}

} // namespace firn::plan
