// Chooses shapes of tile matrices by their cost.
#include "compiler/plan/contraction/tile_matrices.h"

#include "compiler/plan/cost_model.h"

#include <cmath>
#include <numeric>

namespace firn::plan {
namespace {

using Facts = TileMatrixFacts;

constexpr int kGroupBytes = 4;
// Cycles per vector of sums: to store it, load it again, and store its result.
constexpr double kStoreCycles = 4;
// Cycles to store and load a vector of sums once more.
constexpr double kPassCycles = 1.5;
// Cycles of the loops around a block.
constexpr double kBlockCycles = 30;

int64_t ceil_of(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Steps, in k groups, that divide the innermost loop, or its blocks if it has them.
int groups_of(const ContractionShape& shape) {
  const ReductionLoop& loop = shape.k.back();
  int64_t run = loop.block > 0 ? std::gcd(loop.block, loop.extent) : loop.extent;
  int groups = Facts::kRowBytes / kGroupBytes;
  while (run % groups != 0) --groups;
  return groups;
}

// Rows of a tile that splits all rows evenly into as few tiles as possible.
int even_rows(int64_t rows) {
  return static_cast<int>(ceil_of(rows, ceil_of(rows, Facts::kRows)));
}

double products_of(const ContractionShape& shape) {
  double k_extent = 1;
  for (const ReductionLoop& loop : shape.k) k_extent *= static_cast<double>(loop.extent);
  return k_extent;
}

// Cycles of one block of sums, whose reduction takes `k_blocks` blocks; `streams`: its columns come from the
// second cache level.
double block_cycles(const ContractionShape& shape, const TileBlock& block, int rows, int wide, bool streams,
                    int64_t k_blocks) {
  int high = block.tiles_for(rows);
  double compute = high * wide * block.rows * Facts::kRowCycles + (high + wide) * Facts::kLoadCycles;
  compute = std::max(compute, Facts::kLatency);
  double loads = (high * block.rows + wide * block.groups) / Facts::kRowsPerCycle;
  double streamed = streams ? wide * block.groups * Facts::kRowBytes : 0;
  // Sums are stored and loaded again, and the next products wait for that.
  double again = static_cast<double>(k_blocks - 1) * (rows * wide * kPassCycles + Facts::kLatency);
  return products_of(shape) / block.groups * (std::max(compute, loads) + streamed / Facts::kL2BytesPerCycle) +
         rows * wide * kStoreCycles + again + kBlockCycles;
}

bool has_clipped_loop(const ContractionShape& shape) {
  return std::any_of(shape.k.begin(), shape.k.end(),
                     [](const ReductionLoop& loop) { return loop.kind == ReductionLoop::Kind::Clipped; });
}

double l1_share(const Machine& target, double share) {
  return static_cast<double>(share_of(target.cpu.l1_bytes, share));
}

// Bytes of the columns of a tile.
double panel_bytes(const ContractionShape& shape, int wide) {
  return products_of(shape) * wide * Facts::kRowBytes;
}

// Blocks of the reduction whose columns stay near while rows pass; 1 if its loops have no blocks so small.
int64_t choose_k_blocks(const ContractionShape& shape, int wide, const Machine& target) {
  const ReductionLoop& loop = shape.k[k_block_level(shape)];
  if (shape.optimize_size || loop.kind != ReductionLoop::Kind::Rolled || loop.block > 0) return 1;
  int64_t max = share_of(target.cpu.l1_bytes, cache_share::kScratch),
          blocks = ceil_of(static_cast<int64_t>(panel_bytes(shape, wide)), max);
  if (panel_bytes(shape, wide) <= l1_share(target, cache_share::kWorkingSet) || blocks > loop.extent)
    return 1;
  return ceil_of(loop.extent, k_block_extent(shape, blocks)); // no block is empty
}

} // namespace

TileBlock tile_block(const ContractionShape& shape, const TileShape& tile) {
  TileBlock block;
  block.high = static_cast<int>(ceil_of(tile.rows, Facts::kRows));
  block.wide = tile.vectors;
  block.rows = static_cast<int>(std::min(shape.m, ceil_of(tile.rows, block.high)));
  block.groups = groups_of(shape);
  return block;
}

size_t k_block_level(const ContractionShape& shape) {
  size_t level = 0;
  while (level + 1 < shape.k.size() && shape.k[level].extent == 1) ++level;
  return level;
}

int64_t k_block_extent(const ContractionShape& shape, int64_t blocks) {
  size_t level = k_block_level(shape);
  int64_t whole = level + 1 == shape.k.size() ? groups_of(shape) : 1;
  return ceil_of(ceil_of(shape.k[level].extent, whole), blocks) * whole;
}

std::string check_tile_block(const ContractionShape& shape, const TileShape& tile) {
  if (tile.accumulator_splits > 1 || tile.k_interleave > 1)
    return "accumulators of tile matrices are neither split nor interleaved";
  if (int registers = tile_block(shape, tile).registers(); registers > Facts::kRegisters)
    return "it takes " + std::to_string(registers) + " registers of tiles, of which there are " +
           std::to_string(Facts::kRegisters);
  if (shape.m_varies) return "tile matrices want rows that do not vary";
  return "";
}

TileShape choose_tile_block(const ContractionShape& shape, const Machine& target) {
  int rows = even_rows(shape.m);
  int64_t high = ceil_of(shape.m, rows), wide = ceil_of(shape.n, target.cpu.lanes(shape.element_bits));
  TileShape best;
  double best_cycles = INFINITY;
  for (int i = 1; i <= std::min<int64_t>(3, high); ++i)
    for (int j = 1; j <= std::min<int64_t>(3, shape.panel > 0 ? shape.panel : wide); ++j) {
      if (i * j + i + j > Facts::kRegisters || (shape.panel > 0 && shape.panel % j != 0)) continue;
      TileShape tile{i * rows, j, target.cpu.lanes(shape.element_bits)};
      tile.panel = shape.panel > j ? shape.panel : 0;
      if (double cycles = tile_block_cycles(shape, tile, target); cycles < best_cycles) {
        best = tile;
        best_cycles = cycles;
      }
    }
  return best;
}

double tile_block_cycles(const ContractionShape& shape, const TileShape& tile, const Machine& target) {
  TileBlock block = tile_block(shape, tile);
  ColumnGroups groups = column_groups(shape.n, tile);
  double room = l1_share(target, cache_share::kWorkingSet);
  auto rest = static_cast<int>(shape.m % tile.rows);
  // Cycles of all columns; for each group, `passing` bytes of rows come from the second cache level.
  auto all_columns = [&](double passing, bool streams, int64_t k_blocks) {
    auto group = [&](int wide) {
      double cycles = static_cast<double>(shape.m / tile.rows) *
                      block_cycles(shape, block, tile.rows, wide, streams, k_blocks);
      if (rest > 0) cycles += block_cycles(shape, block, rest, wide, streams, k_blocks);
      return cycles + passing / Facts::kL2BytesPerCycle;
    };
    double cycles = static_cast<double>(groups.full_groups) * group(tile.vectors);
    return groups.rest_groups > 0
               ? cycles + static_cast<double>(groups.rest_groups) * group(groups.rest_vectors)
               : cycles;
  };
  double outer = 1;
  for (int64_t extent : shape.outer) outer *= static_cast<double>(extent);
  // Columns outermost: blocks of columns stay near while rows pass; if there is only one tile of rows, all
  // columns pass.
  bool passes_again = shape.m > tile.rows;
  auto vector_bytes = static_cast<double>(shape.vector_bytes),
       scalar_bytes = static_cast<double>(shape.scalar_bytes) / outer;
  int64_t k_blocks = passes_again ? choose_k_blocks(shape, tile.vectors, target) : 1;
  double panel = panel_bytes(shape, tile.vectors) / static_cast<double>(k_blocks);
  // Windows read a row several times; the repeats come while it is near.
  double all_rows = products_of(shape) * static_cast<double>(shape.m) * kGroupBytes,
         passing = std::min(all_rows, scalar_bytes * static_cast<double>(k_blocks));
  double cycles =
      all_columns(scalar_bytes > room ? passing : 0, (passes_again ? panel : vector_bytes) > room, k_blocks);
  // Rows outermost: the rows of a tile stay near while columns pass.
  double tile_bytes = scalar_bytes * tile.rows / static_cast<double>(shape.m);
  if (shape.vector_outer_dims == 0)
    cycles = std::min(cycles, all_columns(tile_bytes > room ? passing : 0, vector_bytes > room, 1));
  return cycles * outer + Facts::kConfigureCycles;
}

void choose_accumulator_tiles(Tiling& tiling, const ContractionShape& shape, const Machine& target) {
  if (shape.optimize_size) return;
  const TileShape& tile = tiling.tile;
  int64_t tiles = shape.m / tile.rows;
  if (tiling.row_block > 0) tiles = std::min(tiles, tiling.row_block / tile.rows);
  if (!tiling.columns_outermost || tiles < 2) return;
  int64_t k_blocks = choose_k_blocks(shape, tile.vectors, target);
  if (k_blocks == 1) return;
  int64_t bytes = int64_t{tile.rows} * tile.vectors * Facts::kRowBytes;
  int64_t max = share_of(target.cpu.l1_bytes, cache_share::kTileAccumulators) / bytes;
  tiling.accumulator_tiles = static_cast<int>(std::max<int64_t>(1, std::min(tiles, max)));
  if (tiling.accumulator_tiles > 1) tiling.k_blocks = static_cast<int>(k_blocks);
}

int64_t tile_k(const ContractionShape& shape) {
  return static_cast<int64_t>(products_of(shape)) / groups_of(shape);
}

// Products are few instructions that take long, and vectors can compute the epilogue of the previous tile
// meanwhile. If there are few steps, the epilogue would hold products up.
void choose_epilogue(Tiling& tiling, const ContractionShape& shape) {
  constexpr int64_t kManySteps = 8;
  if (tiling.optimize_size || tiling.accumulator_tiles > 1 || tiling.k_blocks > 1) return;
  int64_t rows = tiling.row_block > 0 ? std::min(tiling.row_block, shape.m) : shape.m;
  int64_t run =
      tiling.columns_outermost ? rows / tiling.tile.rows : column_groups(shape.n, tiling.tile).full_groups;
  tiling.interleaves_epilogue = run > 1 && tile_k(shape) >= kManySteps && !has_clipped_loop(shape);
}

std::string check_accumulator_tiles(const Tiling& tiling, const ContractionShape& shape) {
  bool has_blocks_of_accumulators = tiling.accumulator_tiles > 1 || tiling.k_blocks > 1;
  if (!has_blocks_of_accumulators && !tiling.interleaves_epilogue) return "";
  if (shape.mac.kind != MacKind::TileMatrix)
    return "only tile matrices have accumulators of several tiles, and blocks of the reduction, in memory";
  if (tiling.interleaves_epilogue && has_blocks_of_accumulators)
    return "an epilogue is interleaved where the accumulators of one tile at a time are in memory";
  if (tiling.interleaves_epilogue && has_clipped_loop(shape))
    return "an epilogue is interleaved with a k whose extent is known";
  const ReductionLoop& loop = shape.k[k_block_level(shape)];
  bool has_blocks = loop.kind == ReductionLoop::Kind::Rolled && loop.block == 0;
  if (tiling.k_blocks > 1 &&
      (!has_blocks || (tiling.k_blocks - 1) * k_block_extent(shape, tiling.k_blocks) >= loop.extent))
    return "blocks of the reduction would be left without any";
  return "";
}

} // namespace firn::plan
