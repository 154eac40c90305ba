// The rules of copies by strides.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/relayout/relayout.h"

namespace firn::plan {
namespace {

class RelayoutRules final : public RulesOf<RelayoutPlan> {
public:
  std::string applies(const Instruction& instruction, const PlanningContext& context) const override {
    const TargetInfo& target = context.options.target;
    auto relayout = find_relayout(instruction, target);
    return relayout && relayout->is_profitable(target) ? "" : "loops over elements are as fast";
  }
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(RelayoutPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options.target);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const RelayoutPlan chosen = *all[0].plan.get_if<RelayoutPlan>();
    const double cycles = predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
    all[0].cycles = cycles;
    for (int64_t lanes = chosen.lanes / 2; lanes >= 1; lanes /= 2) {
      RelayoutPlan other = chosen;
      other.lanes = lanes;
      consider(other, cycles * static_cast<double>(chosen.lanes) / static_cast<double>(lanes), instruction,
               context, all);
    }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& relayout_rules() {
  static const RelayoutRules rules;
  return rules;
}

} // namespace firn::plan
