// The rules of recurrent layers.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/cost_model.h"
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
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const RecurrentPlan chosen = *all[0].plan.get_if<RecurrentPlan>();
    const double cycles = predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
    all[0].cycles = cycles;
    for (int rows = 1; rows <= 4; ++rows)
      for (int vectors = 1; vectors <= 4; ++vectors) {
        RecurrentPlan other = chosen;
        other.rows = rows, other.vectors = vectors;
        // A tile of r rows and v vectors loads r + v operands for r * v products.
        auto loads = [](int r, int v) { return static_cast<double>(r + v) / (r * v); };
        consider(other, cycles * loads(rows, vectors) / loads(chosen.rows, chosen.vectors), instruction,
                 context, all);
      }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& recurrent_rules() {
  static const RecurrentRules rules;
  return rules;
}

} // namespace firn::plan
