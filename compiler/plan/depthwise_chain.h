// Chains [convolution ->] depthwise convolution [-> convolution] of one fusion, as one kernel.
#pragma once

#include "compiler/plan/contraction_plan.h"

namespace firn::plan {

// The members that are there; either of `expand` and `project` is.
struct DepthwiseChain {
  const Instruction *expand = nullptr, *depthwise = nullptr, *project = nullptr;
};

// The chain of a fusion that form-depthwise-chains made; nothing if its members are no such chain, or if
// their kernels cannot walk lines of the image.
std::optional<DepthwiseChain> find_depthwise_chain(const Instruction& fusion, const PlanOptions& options);

// Tile matrices in a chain, whose kernel has registers of one shape: which members multiply by them, and the
// tile of all these. Nobody does where vectors take less time, or other CPUs read the same filters.
struct ChainMatrices {
  const Instruction *expand = nullptr, *project = nullptr;
  TileShape tile;
  bool take(const Instruction& member) const { return &member == expand || &member == project; }
};
ChainMatrices choose_chain_matrices(const Instruction& fusion, const PlanOptions& options);

std::string check(const DepthwiseChainPlan& plan, const Instruction& fusion, const PlanOptions& options);

} // namespace firn::plan
