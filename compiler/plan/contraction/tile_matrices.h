// Contractions by tile matrices: a register tile is a block of 16 x 16 sums at most, in tile registers, which
// hold its operands as well. All tile registers of a kernel have one shape: rows and steps are divided so
// that no rest needs another.
//
// The outermost loop of the reduction is taken in blocks whose columns stay in the first cache level. Where
// the image has no rows for tiles, a copy of it does (FeatureMapCopy).
#pragma once

#include "compiler/plan/contraction/tiling.h"

namespace firn::plan {

// The tile matrices that make up a register tile.
struct TileBlock {
  int high = 1, wide = 1; // tile matrices of sums along rows and columns
  // Rows of each; the last of a column of tiles begins earlier if it would reach too far.
  int rows = 1;
  int groups = 1; // k groups that a product takes
  int registers() const { return high * wide + high + wide; }
  int accumulators(int i, int j) const { return i * wide + j; }
  int lhs(int i) const { return high * wide + i; }
  int rhs(int j) const { return high * wide + high + j; }
  // The tiles that `count` rows take, and the first row of the `i`th of them.
  int tiles_for(int count) const { return (count + rows - 1) / rows; }
  int first_row(int i, int count) const { return std::min(i * rows, count - rows); }
};
TileBlock tile_block(const ContractionShape& shape, const TileShape& tile);

// Why registers cannot hold such a tile; empty: they can.
std::string check_tile_block(const ContractionShape& shape, const TileShape& tile);
// Chooses the tile of least cycles.
TileShape choose_tile_block(const ContractionShape& shape, const Machine& target);
// The number of the reduction loop that k blocks divide: the outermost of several steps. k_block_extent is
// the steps in each of `blocks` blocks.
size_t k_block_level(const ContractionShape& shape);
int64_t k_block_extent(const ContractionShape& shape, int64_t blocks);
// Cycles of the whole contraction, its operands in the second cache level.
double tile_block_cycles(const ContractionShape& shape, const TileShape& tile, const Machine& target);
// Chooses how many tiles have their sums in memory at a time, and the blocks of the reduction, once the loops
// are chosen.
void choose_accumulator_tiles(Tiling& tiling, const ContractionShape& shape, const Machine& target);
// Decides whether the epilogue is interleaved, once the accumulator tiles are chosen.
void choose_epilogue(Tiling& tiling, const ContractionShape& shape);
// Why a plan cannot have these accumulator tiles and this epilogue; empty: it can.
std::string check_accumulator_tiles(const Tiling& tiling, const ContractionShape& shape);
// Products of a tile, each of a whole group of steps: an interleaved epilogue is spread over them.
int64_t tile_k(const ContractionShape& shape);

} // namespace firn::plan
