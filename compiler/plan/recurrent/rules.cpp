// The rules of recurrent layers.
#include "compiler/plan/recurrent/recurrent.h"
#include "compiler/plan/variations.h"

namespace firn::plan {
namespace {

class RecurrentRules final : public RulesByTile<RecurrentPlan> {
public:
  RecurrentRules() : RulesByTile(/*max_side=*/4) {}

  std::optional<KernelPlan> packed_alike(const KernelPlan& packed, const Instruction& instruction,
                                         const PlanningContext& context) const override {
    return plan::packed_alike(*packed.get_if<RecurrentPlan>(), instruction, context.options);
  }
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(RecurrentPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
};

} // namespace

const AlgorithmRules& recurrent_rules() {
  static const RecurrentRules rules;
  return rules;
}

} // namespace firn::plan
