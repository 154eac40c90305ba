// The rules of attention in one kernel.
#include "compiler/graph/fusion.h"
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/attention/attention.h"

namespace firn::plan {
namespace {

class AttentionRules final : public RulesOf<AttentionPlan> {
public:
  std::string applies(const Instruction& instruction, const PlanningContext&) const override {
    return has_fusion_kind(instruction, FusionKind::Attention) ? "" : "this is no fusion of attention";
  }
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
