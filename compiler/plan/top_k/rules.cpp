// The rules of the k first elements of rows.
#include "compiler/plan/elements/element_code.h"
#include "compiler/plan/top_k/plan.h"
#include "compiler/plan/variations.h"

#include <algorithm>

namespace firn::plan {
namespace {

// Up to so many elements, the order is found by comparing each with each, lanes at a time.
constexpr int64_t kMaxSelected = 256;

constexpr char kOtherOperation[] = "this is another operation than the kernel's";

class TopKRules final : public RulesByLanes<TopKPlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    if (!instruction.is(Opcode::TopK)) return kOtherOperation;
    auto dim = static_cast<size_t>(instruction.attributes().integer("dim"));
    const IntExpr &extent = instruction.operand(0).type().dims[dim].extent,
                  &kept = instruction.type().dims[dim].extent;
    return (extent - kept).lower_bound() < 0 ? "there may be fewer elements than are kept" : "";
  }
  std::string complete(TopKPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    if (!instruction.is(Opcode::TopK)) return kOtherOperation;
    const Type& type = instruction.operand(0).type();
    auto dim = static_cast<size_t>(instruction.attributes().integer("dim"));
    const IntExpr& extent = type.dims[dim].extent;
    int64_t k = instruction.attributes().integer("k");
    bool has_keys = !is_small_float(type.dtype) && extent.upper_bound() <= INT32_MAX / 2;
    bool can_select = has_keys && extent.lower_bound() >= k;
    if (plan.lanes == 0) {
      plan.selects = can_select && k <= kMaxSelected;
      plan.lanes =
          plan.selects ? element_code(std::max(32, value_bits(type.dtype)), context.options.target).lanes : 1;
    }
    if (plan.selects && !has_keys) return "its elements have no keys, or no positions of 32 bits";
    if (plan.selects && !can_select) return "there may be fewer elements than are selected";
    return plan.selects ? check_lanes(plan.lanes, context.options.target) : "";
  }

protected:
  std::vector<TopKPlan> others(const TopKPlan& preferred, const Instruction& instruction,
                               const PlanningContext& context, size_t max) const override {
    std::vector<TopKPlan> all = RulesByLanes::others(preferred, instruction, context, max);
    all.push_back({/*selects=*/false, 1});
    return all;
  }
  double cycles(const TopKPlan& plan, const TopKPlan& preferred, const Instruction& instruction,
                const PlanningContext& context) const override {
    if (plan.selects) return RulesByLanes::cycles(plan, preferred, instruction, context);
    // A sort compares about log2 of the row's length as often.
    auto dim = static_cast<size_t>(instruction.attributes().integer("dim"));
    double compared = 1 + std::log2(usual_extent(instruction.operand(0).type().dims[dim].extent));
    return RulesOf::cycles(plan, preferred, instruction, context) * compared;
  }
};

} // namespace

const AlgorithmRules& top_k_rules() {
  static const TopKRules rules;
  return rules;
}

} // namespace firn::plan
