// Requests for the column group after the one at hand, spread over the steps of the tiles before it: every
// tile of rows asks for its share, so that the group has come near when its turn comes.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

// The number, counted over all loops of the reduction, of the iteration of `unroll` steps that begins at
// `step` of the innermost one; `k`: values of the loops around it.
IntExpr iteration_at(const plan::ContractionShape& shape, const std::vector<IntExpr>& k, const IntExpr& step,
                     int64_t unroll);

class GroupRequests {
public:
  // Of a tile of so many rows, whose innermost loop takes `unroll` steps per iteration. None where the group
  // is so small beside the work on it that its arrival hardly matters.
  GroupRequests(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling, int rows,
                int64_t unroll);

  bool any() const { return per_iteration_.upper_bound() > 0; }
  // Those of the iteration that begins at `step` of the innermost loop; `k`: values of the loops around it.
  void emit(const TilePosition& position, const std::vector<IntExpr>& k, const IntExpr& step) const;

private:
  IntExpr rows_per_pass() const;
  IntExpr rows_around() const;

  kernel::Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  int64_t unroll_;
  // Lines, so that all rows together ask for all of the group. Both follow the rows of a run.
  IntExpr per_row_ = 0, per_iteration_ = 0;
};

} // namespace firn::lower
