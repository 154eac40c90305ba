// The rules of walks down decision trees.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/trees/trees.h"

#include <algorithm>

namespace firn::plan {
namespace {

class TreesRules final : public RulesOf<TreesPlan> {
public:
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(TreesPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }

protected:
  std::vector<TreesPlan> others(const TreesPlan& preferred, const Instruction&, const PlanningContext&,
                                size_t) const override {
    std::vector<TreesPlan> all;
    if (preferred.packed) return all;
    for (int64_t rows : {int64_t{1}, int64_t{2}, preferred.rows})
      for (int64_t trees : {int64_t{1}, int64_t{2}, int64_t{4}, preferred.trees})
        all.push_back({rows, trees, preferred.block});
    return all;
  }
  // Walks wait for memory: half as many side by side take twice as long.
  double cycles(const TreesPlan& plan, const TreesPlan& preferred, const Instruction& instruction,
                const PlanningContext& context) const override {
    double walks =
        static_cast<double>(preferred.rows * preferred.trees) / static_cast<double>(plan.rows * plan.trees);
    return RulesOf::cycles(plan, preferred, instruction, context) * std::max(1.0, walks);
  }
};

} // namespace

const AlgorithmRules& trees_rules() {
  static const TreesRules rules;
  return rules;
}

} // namespace firn::plan
