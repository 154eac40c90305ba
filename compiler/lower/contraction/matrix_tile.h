// A register tile of sums in registers of matrices (plan/tile_matrices.h).
#pragma once

#include "compiler/lower/contraction/contraction.h"
#include "compiler/plan/tile_matrices.h"

namespace firn::lower {

// Tiles of a contraction, several of which may have their sums in memory at a time: those of number `place`.
// All calls of one kernel are of one spec and tiling.
class MatrixTile {
public:
  MatrixTile(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
             TilePosition position, int rows, int vectors, IntExpr place);

  // The products of that block of the reduction, which there are tiling.k_blocks of; those of any but the
  // first are added to the sums that are there.
  void emit_products(const IntExpr& k_block, bool is_first);
  void emit_stores();
  // All products while the epilogue takes the sums of `before`, which are where these then go.
  void emit_products_behind(MatrixTile& before);

private:
  void set_tiles();
  void zero_accumulators();
  IntExpr accumulators_place(int i, int j) const;
  void transfer_accumulators(bool loads);
  void emit_reduction(const IntExpr& k_block, size_t level, std::vector<IntExpr>& k);
  void emit_steps(const IntExpr& first, const IntExpr& end, std::vector<IntExpr>& k);
  void emit_products_at(const std::vector<IntExpr>& k);
  int rows_at_a_step() const;
  void emit_share_of_stores(const std::vector<IntExpr>& k);

  kernel::Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  plan::TileBlock block_;
  kernel::OpKind product_;
  TilePosition position_;
  int rows_, high_, before_;          // of tiles of sums, and rows of the first of them that others compute
  IntExpr first_accumulator_;         // in memory
  MatrixTile* interleaved_ = nullptr; // whose rows pass the epilogue among the steps
};

} // namespace firn::lower
