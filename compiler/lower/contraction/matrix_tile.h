// A register tile of sums in tile registers (plan/contraction/tile_matrices.h).
#pragma once

#include "compiler/lower/contraction/contraction.h"
#include "compiler/plan/contraction/tile_matrices.h"

namespace firn::lower {

// A tile of a contraction. Several tiles may have their sums in memory at a time: `place` is its number. All
// calls of one kernel have the same spec and tiling.
class MatrixTile {
public:
  MatrixTile(kernel::Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
             TilePosition position, int rows, int vectors, IntExpr place);

  // Emits the products of that block of the reduction, one of tiling.k_blocks. All but the first block add to
  // the sums in memory.
  void emit_products(const IntExpr& k_block, bool is_first);
  void emit_stores();
  // Emits all products while the epilogue takes the sums of `before`, in whose memory the new sums are
  // stored.
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
  // Rows, tile matrices along them, and rows of the first one that other tiles compute.
  int rows_, high_, before_;
  IntExpr first_accumulator_;         // place in memory
  MatrixTile* interleaved_ = nullptr; // the tile whose rows pass the epilogue among the steps
};

} // namespace firn::lower
