// Chains [convolution ->] depthwise convolution [-> convolution] within one fusion, as one kernel.
//
// If tile matrices multiply the convolutions around the depthwise one, all tile registers of the chain have
// one shape, so that they are configured once.
#pragma once

#include "compiler/plan/contraction/contraction_plan.h"
#include "compiler/plan/windows/plan.h"

namespace firn::plan {

// Whether the tiles of a convolution, or of a contraction of one, can lie along lines of the image: register
// tiles, or the walk of a depthwise convolution over blocks of channels.
bool walks_lines(const Instruction& member, const PlanOptions& options);
bool walks_lines_of_blocks(const Instruction& member, const PlanOptions& options);

// Whether the plan of a fusion makes one kernel of it that has the loop over lines of the image around its
// members, which have plans too.
bool is_kernel_of_lines(const Instruction& fusion, const KernelPlans& plans);

// The members of a chain; at least one of `expand` and `project` is there.
struct DepthwiseChain {
  const Instruction *expand = nullptr, *depthwise = nullptr, *project = nullptr;
};

// The chain of a fusion that form-depthwise-chains made; nothing if its members are no such chain, or if
// their kernels cannot walk lines of the image.
std::optional<DepthwiseChain> find_depthwise_chain(const Instruction& fusion, const PlanOptions& options);

// Tile matrices in a chain, whose kernel configures one shape of registers: the members that multiply by
// them, and their common tile. No member does if vectors take less time, or if other CPUs read the same
// filters.
struct ChainMatrices {
  const Instruction *expand = nullptr, *project = nullptr;
  TileShape tile;
  bool take(const Instruction& member) const { return &member == expand || &member == project; }
};
ChainMatrices choose_chain_matrices(const Instruction& fusion, const PlanOptions& options);

// Why a chain cannot have the plan for its member; empty: it can.
std::string check_member(const KernelPlan& plan, const Instruction& member, const PlanOptions& options);

// Why the plan cannot be followed for the fusion; empty: it can.
std::string check(const DepthwiseChainPlan& plan, const Instruction& fusion, const PlanOptions& options);

} // namespace firn::plan
