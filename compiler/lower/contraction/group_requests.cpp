// The shares of a column group that tiles ask for.
#include "compiler/lower/contraction/group_requests.h"

#include "compiler/kernel/request_streams.h"

#include <algorithm>

namespace firn::lower {

IntExpr iteration_at(const plan::ContractionShape& shape, const std::vector<IntExpr>& k, const IntExpr& step,
                     int64_t unroll) {
  IntExpr iteration = 0;
  for (size_t i = 0; i + 1 < shape.k.size(); ++i) iteration = iteration * shape.k[i].extent + k[i];
  return iteration * (shape.k.back().extent / unroll) + floor_div(step, unroll);
}

GroupRequests::GroupRequests(kernel::Builder& builder, const ContractionSpec& spec,
                             const plan::Tiling& tiling, int rows, int64_t unroll)
    : b_(builder), spec_(spec), tiling_(tiling), unroll_(unroll) {
  int64_t k_extent = 1;
  for (const plan::ReductionLoop& loop : spec_.shape.k) k_extent *= loop.extent;
  if (spec_.group_lines == 0 || k_extent < unroll) return;
  IntExpr positions = at_least_one(rows_around() * rows_per_pass()), lines = spec_.group_lines;
  per_row_ = min(floor_div(lines, positions), 1) * ceil_div(lines, positions);
  per_iteration_ = ceil_div(per_row_ * rows, k_extent / unroll);
  if (per_iteration_.is_constant()) return;
  // Their divisions stay outside of the loop.
  for (IntExpr* number : {&per_row_, &per_iteration_})
    *number = b_.symbolic(b_.index(*number), 0, std::max<int64_t>(0, number->upper_bound()), "lines");
}

// Rows between one column group and the next.
IntExpr GroupRequests::rows_per_pass() const {
  return tiling_.row_block > 0 ? min(tiling_.row_block, spec_.m()) : spec_.m();
}

// Rows of tiles that share a column group: the extent of the outer dims that do not select vectors.
IntExpr GroupRequests::rows_around() const {
  IntExpr count = 1;
  for (size_t i = static_cast<size_t>(spec_.shape.vector_outer_dims); i < spec_.shape.outer.size(); ++i)
    count = count * spec_.outer(i);
  return count;
}

void GroupRequests::emit(const TilePosition& position, const std::vector<IntExpr>& k,
                         const IntExpr& step) const {
  if (!any()) return;
  IntExpr row = 0, iteration = iteration_at(spec_.shape, k, step, unroll_);
  for (size_t i = static_cast<size_t>(spec_.shape.vector_outer_dims); i < spec_.shape.outer.size(); ++i)
    row = row * spec_.outer(i) + position.outer[i];
  IntExpr in_pass = tiling_.row_block > 0 ? floor_mod(position.row, tiling_.row_block) : position.row;
  IntExpr line = (row * rows_per_pass() + in_pass) * per_row_ + iteration * per_iteration_;
  if (!per_iteration_.is_constant())
    return b_.loop(0, per_iteration_, 1,
                   [&](const IntExpr& i) { spec_.prefetch->request_group(b_, position, line + i); });
  int64_t requests = per_iteration_.value();
  for (int64_t i = 0; i < requests; ++i)
    spec_.prefetch->request_group(b_, position,
                                  spec_.prefetches_own_group
                                      ? line + i
                                      : kernel::line_in_streams(line + i, requests, spec_.group_lines));
}

} // namespace firn::lower
