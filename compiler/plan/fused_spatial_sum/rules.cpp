// The rules of sums over positions that a convolution leaves.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/fused_spatial_sum/fused_spatial_sum.h"
#include "compiler/plan/fused_spatial_sum/plan.h"

namespace firn::plan {
namespace {

class FusedSpatialSumRules final : public RulesOf<FusedSpatialSumPlan> {
public:
  std::string applies(const Instruction&, const PlanningContext&) const override {
    return "the plan of its producer decides";
  }
  std::string complete(FusedSpatialSumPlan&, const Instruction& instruction,
                       const PlanningContext&) const override {
    return find_fused_sum(instruction) ? "" : "this is no sum behind a convolution";
  }
};

} // namespace

const AlgorithmRules& fused_spatial_sum_rules() {
  static const FusedSpatialSumRules rules;
  return rules;
}

} // namespace firn::plan
