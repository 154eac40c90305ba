// The rules of register tiles: direct ones, those of all phases of a transposed convolution, and planes.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/contraction/contraction_plan.h"
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
  std::optional<KernelPlan> packed_alike(const KernelPlan&, const Instruction&,
                                         const PlanningContext&) const override {
    return undecided();
  }

protected:
  std::vector<ContractionPlan> others(const ContractionPlan& preferred, const Instruction& instruction,
                                      const PlanningContext& context, size_t max) const override {
    std::vector<ContractionPlan> all;
    for (const TileShape& tile : ranked_tiles(preferred, instruction, context, max)) {
      all.push_back(preferred);
      all.back().tiling = {.tile = tile,
                           .columns_outermost = preferred.tiling.columns_outermost,
                           .optimize_size = preferred.tiling.optimize_size};
    }
    return all;
  }
  double cycles(const ContractionPlan& plan, const ContractionPlan&, const Instruction&,
                const PlanningContext&) const override {
    return plan.tiling.cycles;
  }

private:
  Algorithm algorithm_;
};

// The loop around the copy of a line takes about as many.
constexpr double kLineCycles = 8;

class PlanarRules final : public ContractionRules {
public:
  PlanarRules() : ContractionRules(Algorithm::Planar) {}

  std::string applies(const Instruction& instruction, const PlanningContext& context) const override {
    std::optional<KernelRoot> root = find_contraction(instruction);
    bool may_be = root && root->op->is(Opcode::Convolution) && !context.by_rows;
    if (!may_be || context.options.goals.optimize_size()) return "its code is for speed";
    for (const WindowDim& dim : root->op->attributes().window().dims)
      if (dim.size > kMaxUnrolledWindow) return "its code grows with the window";
    return "";
  }
  std::string check_varying(const Instruction&) const override { return "planes do not vary"; }

protected:
  // The input is copied first, and lies in memory twice.
  double cycles(const ContractionPlan& plan, const ContractionPlan& preferred, const Instruction& instruction,
                const PlanningContext& context) const override {
    const PlanarGeometry& g = *plan.planes;
    double copied = static_cast<double>(g.input.num_elements()) / static_cast<double>(g.copy_lanes),
           lines = static_cast<double>(g.input.num_elements() / g.input.dims.back().value());
    return ContractionRules::cycles(plan, preferred, instruction, context) + 2 * copied + kLineCycles * lines;
  }
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
