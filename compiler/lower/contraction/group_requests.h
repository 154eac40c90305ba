// Requests for the next column group, spread over the steps of the tiles of this one: every tile of rows
// requests its share, so that the group is near when its turn comes.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

// The number of an iteration, counted over all loops of the reduction. The iteration takes `unroll` steps and
// begins at `step` of the innermost loop; `k`: values of the outer loops.
IntExpr iteration_at(const plan::ContractionShape& shape, const std::vector<IntExpr>& k, const IntExpr& step,
                     int64_t unroll);

class GroupRequests {
public:
  // Requests for a tile of `rows` rows, whose innermost loop takes `unroll` steps per iteration. None if the
  // group is so small beside the work on it that its arrival hardly matters.
  GroupRequests(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling, int rows,
                int64_t unroll);

  bool any() const { return per_iteration_.upper_bound() > 0; }
  // Emits the requests of the iteration that begins at `step` of the innermost loop; `k`: values of the outer
  // loops.
  void emit(const TilePosition& position, const std::vector<IntExpr>& k, const IntExpr& step) const;

private:
  IntExpr rows_per_pass() const;
  IntExpr rows_around() const;

  kernel::Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  int64_t unroll_;
  // Lines per iteration, so that all rows together request the whole group. Both follow a run's number of
  // rows.
  IntExpr per_row_ = 0, per_iteration_ = 0;
};

} // namespace firn::lower
