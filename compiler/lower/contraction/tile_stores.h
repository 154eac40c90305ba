// What becomes of a tile's sums: each vector of them through the epilogue, straight or in a loop over rows.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

class TileStores {
public:
  TileStores(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), groups_(plan::column_groups(spec.shape.n, tiling.tile)),
        unroll_(tiling.epilogue_unroll) {}

  // Sums of rows x vectors, row by row.
  void store(const TilePosition& position, int rows, int vectors,
             const std::vector<kernel::Register>& accumulators);
  // Stores what accumulators_in_memory() wrote, `vectors` wide, from row `first_row` of the memory at `place`
  // on; spec.initial is added to it.
  void store_from_memory(const TilePosition& position, int rows, int vectors, const IntExpr& place,
                         int first_row);
  // Of these the rows [first, end), where nobody wants totals.
  void store_rows_from_memory(const TilePosition& position, const IntExpr& first, const IntExpr& end,
                              int vectors, const IntExpr& place, int first_row);
  // The array in which any tile's sums have room.
  int accumulators_in_memory();

private:
  using Totals = std::vector<kernel::Register>; // of vectors, if anybody wants them
  Totals make_totals(int vectors, kernel::Register start) const;
  void add_total(Totals& totals, int vector, kernel::Register stored) const;
  void store_totals(const TilePosition& position, const Totals& totals);
  Totals store_rows(const TilePosition& position, int rows, int vectors,
                    const std::vector<kernel::Register>& accumulators);
  Totals store_in_loop(TilePosition position, const IntExpr& first_row, const IntExpr& end_row, int vectors,
                       const IntExpr& first_accumulator, bool adds_initial);
  kernel::Register store(const TilePosition& position, int row, int vector, kernel::Register sum);
  void put_in_memory(int count, const std::vector<kernel::Register>& accumulators);
  // Column by column, as many as there are.
  void store_columns(TilePosition position, int rows, int vectors);
  int valid_lanes(const TilePosition& position, int vector) const;

  kernel::Builder& b_;
  const ContractionSpec& spec_;
  plan::ColumnGroups groups_;
  int64_t unroll_;
};

// Elements of the sums of the largest tile: the last panel's group may be wider than the others.
int64_t largest_tile(const ContractionSpec& spec, const plan::Tiling& tiling);

// That adds sums.
kernel::OpKind sum_op(const ContractionSpec& spec);

} // namespace firn::lower
