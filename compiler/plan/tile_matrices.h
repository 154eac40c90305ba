// Contractions by tile matrices: a register tile is a block of 16 x 16 sums at most, in registers of their
// own, beside which those of the operands lie. All of a kernel's have one shape: rows and steps are divided
// so that what is left of them needs no other.
#pragma once

#include "compiler/plan/tiling.h"

namespace firn::plan {

// The tiles of a register tile.
struct TileBlock {
  int high = 1, wide = 1; // of sums
  int rows = 1;   // of each; the last of a column of tiles begins earlier where it would reach too far
  int groups = 1; // of steps that a product takes
  int registers() const { return high * wide + high + wide; }
  int accumulators(int i, int j) const { return i * wide + j; }
  int lhs(int i) const { return high * wide + i; }
  int rhs(int j) const { return high * wide + high + j; }
  // Tiles of sums that `count` rows take, and where the `i`th begins, counted from the first of them.
  int tiles_for(int count) const { return (count + rows - 1) / rows; }
  int first_row(int i, int count) const { return std::min(i * rows, count - rows); }
};
TileBlock tile_block(const ContractionShape& shape, const TileShape& tile);

// Why registers do not hold such a tile; empty: they do.
std::string check_tile_block(const ContractionShape& shape, const TileShape& tile);
// The tile of least cycles.
TileShape choose_tile_block(const ContractionShape& shape, const TargetInfo& target);
// The loop of the reduction that blocks of it divide: the outermost of several steps. And the steps of each
// of `blocks` of these.
size_t k_block_level(const ContractionShape& shape);
int64_t k_block_extent(const ContractionShape& shape, int64_t blocks);
// Of the whole contraction, its operands in the second cache level.
double tile_block_cycles(const ContractionShape& shape, const TileShape& tile, const TargetInfo& target);
// Tiles whose sums are in memory at a time, and blocks of the reduction, once the loops are chosen.
void choose_accumulator_tiles(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target);
// Whether the epilogue is interleaved, once these are chosen.
void choose_epilogue(Tiling& tiling, const ContractionShape& shape);
// Why these cannot be had; empty: they can.
std::string check_accumulator_tiles(const Tiling& tiling, const ContractionShape& shape);
// Products of a tile, each of a whole group of steps: among these an epilogue is interleaved.
int64_t tile_k(const ContractionShape& shape);

} // namespace firn::plan
