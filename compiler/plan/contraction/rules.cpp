// The rules of register tiles: direct ones, those of all phases of a transposed convolution, and planes.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/contraction/ranked_tiles.h"
#include "compiler/plan/varying_dims.h"

namespace firn::plan {
namespace {

class ContractionRules : public RulesOf<ContractionPlan> {
public:
  explicit ContractionRules(Algorithm algorithm) : algorithm_(algorithm) {}

  KernelPlan undecided() const override {
    ContractionPlan plan;
    plan.algorithm = algorithm_;
    return plan;
  }
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(ContractionPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (all.empty()) return all;
    auto cycles = [](const Candidate& each) { return each.plan.get_if<ContractionPlan>()->tiling.cycles; };
    all[0].cycles = cycles(all[0]);
    if (max <= 1) return all;
    const ContractionPlan chosen = *all[0].plan.get_if<ContractionPlan>();
    for (const TileShape& tile : ranked_tiles(chosen, instruction, context, max)) {
      ContractionPlan other = chosen;
      other.tiling = {.tile = tile, .columns_outermost = chosen.tiling.columns_outermost};
      other.tiling.optimize_size = chosen.tiling.optimize_size;
      consider(other, 0, instruction, context, all);
      all.back().cycles = cycles(all.back());
    }
    return best_of(std::move(all), max);
  }
  std::optional<KernelPlan> packed_alike(const KernelPlan&, const Instruction&,
                                         const PlanningContext&) const override {
    return undecided();
  }

private:
  Algorithm algorithm_;
};

class PlanarRules final : public ContractionRules {
public:
  PlanarRules() : ContractionRules(Algorithm::Planar) {}

  std::string applies(const Instruction& instruction, const PlanningContext& context) const override {
    std::optional<KernelRoot> root = find_contraction(instruction);
    bool may_be = root && root->op->is(Opcode::Convolution) && !context.by_rows;
    if (!may_be || context.options.goals.optimize_size()) return "its code is for speed";
    auto planes = PlanarGeometry::of(*root->op, instruction.type(), context.options.target);
    return planes && planes->is_profitable() ? "" : "channels are many enough to fill vectors";
  }
  std::string check_varying(const Instruction&) const override { return "planes do not vary"; }
};

} // namespace

const AlgorithmRules& direct_rules() {
  static const ContractionRules rules(Algorithm::Direct);
  return rules;
}

const AlgorithmRules& polyphase_rules() {
  static const ContractionRules rules(Algorithm::Polyphase);
  return rules;
}

const AlgorithmRules& planar_rules() {
  static const PlanarRules rules;
  return rules;
}

} // namespace firn::plan
