// Which fusions are chains.
#include "compiler/plan/depthwise_chain.h"

#include "compiler/graph/fusion.h"
#include "compiler/plan/windows.h"

namespace firn::plan {
namespace {

constexpr int kRank = 4; // images of lines

bool is_walked_by_lines(const Instruction& member, const PlanOptions& options) {
  if (plan_depthwise(member, options)) return false;
  std::optional<KernelRoot> root = find_contraction(member);
  if (!root || !root->op->is(Opcode::Convolution) || member.type().rank() != kRank) return false;
  auto g = ConvolutionGeometry::of(*root->op, member.type(), Product{}, /*by_lines=*/true,
                                   /*whole_lines=*/false);
  return g && g->shape.outer.size() == 2;
}

// Tiles lie along the lines.
bool is_depthwise(const Instruction& member, const PlanOptions& options) {
  std::optional<DepthwisePlan> plan = plan_depthwise(member, options);
  return plan && member.type().rank() == kRank && plan->tiling.along == 1;
}

} // namespace

std::optional<DepthwiseChain> find_depthwise_chain(const Instruction& fusion, const PlanOptions& options) {
  if (!has_fusion_kind(fusion, FusionKind::DepthwiseChain)) return std::nullopt;
  DepthwiseChain chain;
  for (const Instruction* member : fusion_members(fusion)) {
    if (chain.project) return std::nullopt;
    if (!chain.depthwise && is_depthwise(*member, options))
      chain.depthwise = member;
    else if (is_walked_by_lines(*member, options) && (chain.depthwise || !chain.expand))
      (chain.depthwise ? chain.project : chain.expand) = member;
    else
      return std::nullopt;
  }
  if (!chain.depthwise || !(chain.expand || chain.project)) return std::nullopt;
  return chain;
}

std::string check(const DepthwiseChainPlan& plan, const Instruction& fusion, const PlanOptions& options) {
  std::optional<DepthwiseChain> chain = find_depthwise_chain(fusion, options);
  if (!chain) return "this is no chain of convolutions whose kernels can walk lines";
  int64_t lines = chain->depthwise->type().dim(2);
  if (plan.lines < 1 || plan.lines > lines) return "a strip has 1 to " + std::to_string(lines) + " lines";
  return "";
}

} // namespace firn::plan
