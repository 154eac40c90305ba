// The rules of attention in one kernel.
#include "compiler/plan/attention/attention.h"
#include "compiler/plan/variations.h"

namespace firn::plan {
namespace {

class AttentionRules final : public RulesByTile<AttentionPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(AttentionPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
};

} // namespace

const AlgorithmRules& attention_rules() {
  static const AttentionRules rules;
  return rules;
}

} // namespace firn::plan
