// The loops around the tiles of a contraction: which operand's loop is outermost, blocks of rows and parts of
// the reduction for the caches, and shares of a group of columns for threads.
#pragma once

#include "compiler/plan/contraction/dot.h"
#include "compiler/plan/contraction/plan.h"

namespace firn::plan {

// Chooses blocks of rows and parts of the reduction for a dot with constant columns. `form`: the plan by
// whose parts the columns are packed; null: parts are chosen.
void choose_blocks(Tiling& tiling, const DotGeometry& geometry, const Machine& target, int threads,
                   const ContractionPlan* form);
// Puts columns outermost, and cuts the walk of a column group into shares, if threads gain by it.
// `may_cut_rows`: a walk may be cut within a line of rows.
void share_out(Tiling& tiling, const ContractionShape& shape, const Machine& target, int threads,
               bool may_cut_rows);

// Why a plan cannot have such tiles and loops; empty: it can.
std::string check_tiling(const Tiling& tiling, const ContractionShape& shape);
std::string check_blocks(const Tiling& tiling, const DotGeometry& geometry);
std::string check_split_m(const Tiling& tiling, const ContractionShape& shape, bool may_cut_rows);

} // namespace firn::plan
