// The rules of walks over windows.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/cost_model.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/windows/window_cycles.h"
#include "compiler/plan/windows/windows.h"

#include "compiler/graph/fusion.h"

namespace firn::plan {
namespace {

// The widest tile among candidates, and the steps of straight code that they may have.
constexpr int64_t kMaxPixels = 14, kMaxBody = 160;

// Walks whose epilogue takes sums from registers.
template <class Plan> class WindowRules : public RulesOf<Plan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
};

class DepthwiseRules final : public WindowRules<DepthwisePlan> {
public:
  std::string complete(DepthwisePlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    auto plan = plan_depthwise(instruction, context.options);
    if (!plan) return {};
    const Instruction& convolution = *find_contraction(instruction)->op;
    const WindowWalk walk{instruction.type(), convolution.attributes().window().dims,
                          convolution.operand(1).dim(1), /*has_taps=*/true};
    auto cycles = [&](const DepthwisePlan& of) {
      return window_cycles(walk, of.tiling, of.taps_in_registers, context.options.target);
    };
    std::vector<Candidate> all = only(*plan, instruction, context);
    if (!all.empty()) all[0].cycles = cycles(*plan);
    if (max <= 1 || all.empty()) return all;
    for (const WindowTiling& tiling : window_tilings(walk, kMaxPixels, kMaxBody)) {
      DepthwisePlan other = *plan;
      other.tiling = tiling;
      other.taps_in_registers = plan->taps_in_registers && tiling.unrolled;
      consider(other, cycles(other), instruction, context, all);
    }
    return best_of(std::move(all), max);
  }
};

class DepthwiseChainRules final : public RulesOf<DepthwiseChainPlan> {
public:
  std::string complete(DepthwiseChainPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t) const override {
    if (!has_fusion_kind(instruction, FusionKind::DepthwiseChain)) return {};
    return only(DepthwiseChainPlan{instruction.attributes().integer("rows", 0)}, instruction, context);
  }
};

class PoolingRules final : public WindowRules<PoolingPlan> {
public:
  std::string complete(PoolingPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    auto plan = plan_pooling(instruction, context.options);
    if (!plan) return {};
    const std::vector<WindowDim>& dims = find_pooling(instruction)->op->attributes().window().dims;
    const std::vector<WindowDim> window(dims.begin() + 2, dims.end());
    const WindowWalk walk{instruction.type(), window};
    auto cycles = [&](const PoolingPlan& of) {
      return window_cycles(walk, of.tiling, false, context.options.target);
    };
    std::vector<Candidate> all = only(*plan, instruction, context);
    if (!all.empty()) all[0].cycles = cycles(*plan);
    if (max <= 1 || all.empty()) return all;
    for (const WindowTiling& tiling : window_tilings(walk, kMaxPixels, kMaxBody))
      consider(PoolingPlan{tiling}, cycles(PoolingPlan{tiling}), instruction, context, all);
    return best_of(std::move(all), max);
  }
};

class RowPoolingRules final : public WindowRules<RowPoolingPlan> {
public:
  std::string complete(RowPoolingPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }
  std::vector<Candidate> candidates(const Instruction& instruction, const PlanningContext& context,
                                    size_t max) const override {
    std::vector<Candidate> all = only(undecided(), instruction, context);
    if (max <= 1 || all.empty()) return all;
    const RowPoolingPlan chosen = *all[0].plan.get_if<RowPoolingPlan>();
    const double cycles = predicted_cycles(instruction, context.options.target, context.model_weight_bytes);
    all[0].cycles = cycles;
    for (int64_t lanes = chosen.lanes / 2; lanes >= 1; lanes /= 2) {
      RowPoolingPlan other = chosen;
      other.lanes = lanes;
      consider(other, cycles * static_cast<double>(chosen.lanes) / static_cast<double>(lanes), instruction,
               context, all);
    }
    return best_of(std::move(all), max);
  }
};

} // namespace

const AlgorithmRules& depthwise_rules() {
  static const DepthwiseRules rules;
  return rules;
}

const AlgorithmRules& depthwise_chain_rules() {
  static const DepthwiseChainRules rules;
  return rules;
}

const AlgorithmRules& pooling_rules() {
  static const PoolingRules rules;
  return rules;
}

const AlgorithmRules& row_pooling_rules() {
  static const RowPoolingRules rules;
  return rules;
}

} // namespace firn::plan
