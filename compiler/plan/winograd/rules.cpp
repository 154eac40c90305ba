// The rules of Winograd's algorithm.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/winograd/winograd.h"

namespace firn::plan {
namespace {

class WinogradRules final : public RulesOf<WinogradPlan> {
public:
  std::string applies(const Instruction&, const PlanningContext&) const override {
    return "it is chosen for all convolutions together (choose_winograd.h)";
  }
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(WinogradPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context);
  }
  std::optional<KernelPlan> packed_alike(const KernelPlan& packed, const Instruction&,
                                         const PlanningContext&) const override {
    const auto& plan = *packed.get_if<WinogradPlan>();
    return WinogradPlan{plan.outputs_high, plan.outputs_wide};
  }
};

} // namespace

const AlgorithmRules& winograd_rules() {
  static const WinogradRules rules;
  return rules;
}

} // namespace firn::plan
