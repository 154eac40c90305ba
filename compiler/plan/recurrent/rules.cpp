// The rules of recurrent layers.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/recurrent/recurrent.h"

namespace firn::plan {
namespace {

class RecurrentRules final : public RulesOf<RecurrentPlan> {
public:
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
