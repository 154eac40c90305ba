// The rules of attention in one kernel.
#include "compiler/graph/fusion.h"
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/attention/attention.h"
#include "compiler/plan/cost_model.h"

namespace firn::plan {
namespace {

class AttentionRules final : public RulesOf<AttentionPlan> {
public:
  std::string applies(const Instruction& instruction, const PlanningContext&) const override {
    return has_fusion_kind(instruction, FusionKind::Attention) ? "" : "this is no fusion of attention";
  }
  std::string check_varying(const Instruction&) const override { return ""; }
  std::string complete(AttentionPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const AttentionPlan chosen = *all[0].plan.get_if<AttentionPlan>();
    const double cycles = predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
    all[0].cycles = cycles;
    for (int rows = 1; rows <= chosen.rows; ++rows)
      for (int vectors = 1; vectors <= chosen.vectors; ++vectors) {
        AttentionPlan other = chosen;
        other.rows = rows, other.vectors = vectors;
        auto loads = [](int r, int v) { return static_cast<double>(r + v) / (r * v); };
        consider(other, cycles * loads(rows, vectors) / loads(chosen.rows, chosen.vectors), instruction,
                 context, all);
      }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& attention_rules() {
  static const AttentionRules rules;
  return rules;
}

} // namespace firn::plan
