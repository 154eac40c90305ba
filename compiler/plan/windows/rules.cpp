// The rules of walks over windows.
#include "compiler/plan/variations.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/windows/line_buffer.h"
#include "compiler/plan/windows/window_cycles.h"
#include "compiler/plan/windows/windows.h"

#include "compiler/graph/fusion.h"

namespace firn::plan {
namespace {

// The widest tile among candidates, and the steps of straight code that they may have.
constexpr int64_t kMaxPixels = 14, kMaxBody = 160;

WindowWalk depthwise_walk(const Instruction& instruction) {
  const Instruction& convolution = *find_contraction(instruction)->op;
  return {instruction.type(), convolution.attributes().window().dims, convolution.operand(1).dim(1),
          /*has_taps=*/true};
}

WindowWalk pooling_walk(const Instruction& instruction) {
  const std::vector<WindowDim>& dims = find_pooling(instruction)->op->attributes().window().dims;
  return {instruction.type(), {dims.begin() + 2, dims.end()}};
}

class DepthwiseRules final : public RulesOf<DepthwisePlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(DepthwisePlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }

protected:
  std::optional<DepthwisePlan> preferred(const Instruction& instruction,
                                         const PlanningContext& context) const override {
    return plan_depthwise(instruction, context.options);
  }
  std::vector<DepthwisePlan> others(const DepthwisePlan& preferred, const Instruction& instruction,
                                    const PlanningContext&, size_t) const override {
    std::vector<DepthwisePlan> all;
    for (const WindowTiling& tiling : window_tilings(depthwise_walk(instruction), kMaxPixels, kMaxBody)) {
      all.push_back(preferred);
      all.back().tiling = tiling;
      all.back().taps_in_registers &= tiling.unrolled;
    }
    return all;
  }
  double cycles(const DepthwisePlan& plan, const DepthwisePlan&, const Instruction& instruction,
                const PlanningContext& context) const override {
    return window_cycles(depthwise_walk(instruction), plan.tiling, plan.taps_in_registers,
                         context.options.target);
  }
};

class DepthwiseChainRules final : public RulesOf<DepthwiseChainPlan> {
public:
  std::string complete(DepthwiseChainPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }

protected:
  std::optional<DepthwiseChainPlan> preferred(const Instruction& instruction,
                                              const PlanningContext&) const override {
    if (!has_fusion_kind(instruction, FusionKind::DepthwiseChain)) return std::nullopt;
    return DepthwiseChainPlan{instruction.attributes().integer("rows", 0)};
  }
};

class LineBufferRules final : public RulesOf<LineBufferPlan> {
public:
  std::string complete(LineBufferPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
  }

protected:
  std::optional<LineBufferPlan> preferred(const Instruction& instruction,
                                          const PlanningContext&) const override {
    if (!has_fusion_kind(instruction, FusionKind::LineBuffer)) return std::nullopt;
    return LineBufferPlan{instruction.attributes().integer("rows", 0), {}};
  }
};

class PoolingRules final : public RulesOf<PoolingPlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(PoolingPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return check(plan, instruction, context.options);
  }

protected:
  std::optional<PoolingPlan> preferred(const Instruction& instruction,
                                       const PlanningContext& context) const override {
    return plan_pooling(instruction, context.options);
  }
  std::vector<PoolingPlan> others(const PoolingPlan&, const Instruction& instruction, const PlanningContext&,
                                  size_t) const override {
    std::vector<PoolingPlan> all;
    for (const WindowTiling& tiling : window_tilings(pooling_walk(instruction), kMaxPixels, kMaxBody))
      all.push_back({tiling});
    return all;
  }
  double cycles(const PoolingPlan& plan, const PoolingPlan&, const Instruction& instruction,
                const PlanningContext& context) const override {
    return window_cycles(pooling_walk(instruction), plan.tiling, /*taps_in_registers=*/false,
                         context.options.target);
  }
};

class RowPoolingRules final : public RulesByLanes<RowPoolingPlan> {
public:
  std::string check_varying(const Instruction& instruction) const override {
    return check_varying_epilogue(instruction);
  }
  std::string complete(RowPoolingPlan& plan, const Instruction& instruction,
                       const PlanningContext& context) const override {
    return plan::complete(plan, instruction, context.options);
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

const AlgorithmRules& line_buffer_rules() {
  static const LineBufferRules rules;
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
