// The register tiles that the cost model weighs for a contraction.
#pragma once

#include "compiler/plan/contraction/contraction_plan.h"

namespace firn::plan {

// The best `max` tiles of vectors at most, fewest cycles first.
std::vector<TileShape> ranked_tiles(const ContractionShape& shape, const Machine& target, size_t max);

// The tiles that `plan`, a completed plan of the instruction, could have in place of its own; none if it
// multiplies by tile matrices.
std::vector<TileShape> ranked_tiles(const ContractionPlan& plan, const Instruction& instruction,
                                    const PlanningContext& context, size_t max);

} // namespace firn::plan
