// The rules of walks down decision trees.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/cost_model.h"
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
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const TreesPlan chosen = *all[0].plan.get_if<TreesPlan>();
    const double cycles = predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
    all[0].cycles = cycles;
    for (int64_t rows : {int64_t{1}, int64_t{2}, chosen.rows})
      for (int64_t trees : {int64_t{1}, int64_t{2}, int64_t{4}, chosen.trees}) {
        // Walks wait for memory: half as many side by side take twice as long.
        double walks = static_cast<double>(chosen.rows * chosen.trees) / static_cast<double>(rows * trees);
        consider(TreesPlan{rows, trees, chosen.block}, cycles * std::max(1.0, walks), instruction, context,
                 all);
      }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& trees_rules() {
  static const TreesRules rules;
  return rules;
}

} // namespace firn::plan
