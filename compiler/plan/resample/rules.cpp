// The rules of resampled images.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/resample/resample.h"

namespace firn::plan {
namespace {

class ResampleRules final : public RulesOf<ResamplePlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(ResamplePlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
};

} // namespace

const AlgorithmRules& resample_rules() {
  static const ResampleRules rules;
  return rules;
}

} // namespace firn::plan
