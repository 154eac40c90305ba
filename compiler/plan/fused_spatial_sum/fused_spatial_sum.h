// Sums over all positions of a map. The kernel that makes the map leaves one sum per tile, besides its
// result.
#pragma once

#include "compiler/plan/contraction/contraction_plan.h"

namespace firn::plan {

// The members of a fusion that fuse-spatial-sums made.
struct FusedSum {
  const Instruction *producer = nullptr, *reduction = nullptr;
};
std::optional<FusedSum> find_fused_sum(const Instruction& fusion);

// Whether kernels of the machine leave sums: those with vectors of channels do. Without sums, the map is read
// again.
bool leaves_fused_sums(const Machine& target);

// The member that computes the map: a convolution itself, or the last one of a planned chain.
const Instruction& summed_member(const Instruction& producer, const KernelPlans& plans);
// Tiles per vector of channels of an image for which the planned kernel of a convolution or chain can store
// sums; 0: it cannot.
int64_t summed_tiles(const Instruction& producer, const KernelPlans& plans);
// Whether adding so many tile sums is clearly less work than adding the map itself.
bool is_fused_sum_profitable(const Type& map, int64_t tiles);

} // namespace firn::plan
