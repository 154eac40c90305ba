// The loops around the tiles of a contraction: which operand's is the outermost, blocks of rows and parts of
// the reduction for the caches, and shares of a group of columns for threads.
#pragma once

#include "compiler/plan/dot.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Blocks of rows and parts of the reduction of a dot with constant columns. `form`: the plan whose parts the
// columns lie in; null: they are chosen.
void choose_blocks(Tiling& tiling, const DotGeometry& geometry, const TargetInfo& target, int threads,
                   const ContractionPlan* form);
// Columns outermost, and shares of what a group of them passes over, where threads gain by it.
// `may_cut_rows`: a tile does not leave its line.
void share_out(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target, int threads,
               bool may_cut_rows);

// Why such loops cannot be had; empty: they can.
std::string check_blocks(const Tiling& tiling, const DotGeometry& geometry);
std::string check_split_m(const Tiling& tiling, const ContractionShape& shape, bool may_cut_rows);

} // namespace firn::plan
