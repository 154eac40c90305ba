// The rules of kernels that pack constants.
#include "compiler/graph/packing.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/pack/plan.h"
#include "compiler/plan/variations.h"

#include <algorithm>

namespace firn::plan {
namespace {

class PackRules final : public RulesByLanes<PackPlan> {
public:
  std::string complete(PackPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    auto packing = read_pack(instruction);
    if (!packing) return "this is another operation than the kernel's";
    const Machine& target = context.options.target;
    if (plan.lanes == 0) {
      plan.lanes = std::max(1, target.cpu.lanes(static_cast<int>(8 * packing->element_bytes)));
      plan.in_f64 |= packing->transform && target.cpu.has_double;
    }
    if (plan.in_f64 && !packing->transform) return "its elements are copied as they are";
    return check_lanes(plan.lanes, target);
  }
};

} // namespace

const AlgorithmRules& pack_rules() {
  static const PackRules rules;
  return rules;
}

} // namespace firn::plan
