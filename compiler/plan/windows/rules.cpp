// The rules of walks over windows.
#include "compiler/plan/algorithm_rules.h"
#include "compiler/plan/varying_dims.h"
#include "compiler/plan/windows/depthwise_chain.h"
#include "compiler/plan/windows/windows.h"

#include "compiler/graph/fusion.h"

namespace firn::plan {
namespace {

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
                                    size_t) const override {
    auto plan = plan_depthwise(instruction, context.options);
    return plan ? only(*plan, instruction, context) : std::vector<Candidate>();
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
                                    size_t) const override {
    auto plan = plan_pooling(instruction, context.options);
    return plan ? only(*plan, instruction, context) : std::vector<Candidate>();
  }
};

class RowPoolingRules final : public WindowRules<RowPoolingPlan> {
public:
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

const AlgorithmRules& pooling_rules() {
  static const PoolingRules rules;
  return rules;
}

const AlgorithmRules& row_pooling_rules() {
  static const RowPoolingRules rules;
  return rules;
}

} // namespace firn::plan
