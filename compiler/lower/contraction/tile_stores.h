// The stores of a tile's sums: each vector of them passes the epilogue, in straight code or in a loop over
// rows.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

class TileStores {
public:
  TileStores(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), groups_(plan::column_groups(spec.shape.n, tiling.tile)),
        unroll_(tiling.epilogue_unroll), max_unrolled_(tiling.max_unrolled_stores) {}

  // Sums of rows x vectors, row by row.
  void store(const TilePosition& position, int rows, int vectors,
             const std::vector<kernel::Register>& accumulators);
  // Stores the sums that lie in the spill buffer, `vectors` wide, from row `first_row` of the memory at
  // `place` on, after adding their start.
  void store_from_memory(const TilePosition& position, int rows, int vectors, const IntExpr& place,
                         int first_row);
  // Stores only the rows [first, end) of these sums, if no totals are wanted.
  void store_rows_from_memory(const TilePosition& position, const IntExpr& first, const IntExpr& end,
                              int vectors, const IntExpr& place, int first_row);

private:
  using Totals = std::vector<kernel::Register>; // one per vector, if totals are wanted
  Totals make_totals(int vectors, kernel::Register start) const;
  void add_total(Totals& totals, int vector, kernel::Register stored) const;
  void store_totals(const TilePosition& position, const Totals& totals);
  Totals store_rows(const TilePosition& position, int rows, int vectors,
                    const std::vector<kernel::Register>& accumulators);
  Totals store_in_loop(TilePosition position, const IntExpr& first_row, const IntExpr& end_row, int vectors,
                       const IntExpr& first_accumulator, bool adds_initial);
  kernel::Register store(const TilePosition& position, int row, int vector, kernel::Register sum);
  void put_in_memory(int count, const std::vector<kernel::Register>& accumulators);
  // Stores column by column, as many as there are.
  void store_columns(TilePosition position, int rows, int vectors);
  int valid_lanes(const TilePosition& position, int vector) const;

  kernel::Builder& b_;
  const ContractionSpec& spec_;
  plan::ColumnGroups groups_;
  int64_t unroll_;   // rows that the epilogue's loop takes at a time
  int max_unrolled_; // vectors of sums that have straight code
};

// Elements of the sums of the largest tile: the last panel's group may be wider than the others.
int64_t largest_tile(const plan::ContractionShape& shape, const plan::Tiling& tiling);

// The operation that adds sums.
kernel::OpKind sum_op(const ContractionSpec& spec);

} // namespace firn::lower
