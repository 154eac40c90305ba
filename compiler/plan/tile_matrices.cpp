// Shapes of tile matrices and what they cost.
#include "compiler/plan/tile_matrices.h"

#include "compiler/plan/cost_model.h"

#include <cmath>
#include <numeric>

namespace firn::plan {
namespace {

using Facts = TileMatrixFacts;

constexpr int kGroupBytes = 4;
// Of every vector of sums: it is stored, loaded again, and its result stored.
constexpr double kStoreCycles = 4;
// Of the loops around a block.
constexpr double kBlockCycles = 30;

int64_t ceil_of(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Steps, in k groups, that divide the innermost loop, within blocks if it has these.
int groups_of(const ContractionShape& shape) {
  const ReductionLoop& loop = shape.k.back();
  int64_t run = loop.block > 0 ? std::gcd(loop.block, loop.extent) : loop.extent;
  int groups = Facts::kRowBytes / kGroupBytes;
  while (run % groups != 0) --groups;
  return groups;
}

// Of all rows, in as few tiles as hold them, evenly.
int even_rows(int64_t rows) {
  return static_cast<int>(ceil_of(rows, ceil_of(rows, Facts::kRows)));
}

double products_of(const ContractionShape& shape) {
  double steps = 1;
  for (const ReductionLoop& loop : shape.k) steps *= static_cast<double>(loop.extent);
  return steps;
}

// One block of sums.
double block_cycles(const ContractionShape& shape, const TileBlock& block, int rows, int wide, bool streams) {
  int high = block.tiles_for(rows);
  double compute = high * wide * (block.rows * Facts::kRowCycles + Facts::kProductCycles);
  double loads = (high * block.rows + wide * block.groups) / Facts::kRowsPerCycle;
  double stream = streams ? wide * block.groups * Facts::kRowBytes / Facts::kL2BytesPerCycle : 0;
  return products_of(shape) / block.groups * std::max({compute, loads, stream}) + rows * wide * kStoreCycles +
         kBlockCycles;
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

std::string check_tile_block(const ContractionShape& shape, const TileShape& tile) {
  if (tile.accumulator_splits > 1 || tile.k_interleave > 1)
    return "sums of tile matrices are neither split nor interleaved";
  if (int registers = tile_block(shape, tile).registers(); registers > Facts::kRegisters)
    return "it takes " + std::to_string(registers) + " registers of tiles, of which there are " +
           std::to_string(Facts::kRegisters);
  if (shape.m_varies) return "tile matrices want rows that do not vary";
  return "";
}

TileShape choose_tile_block(const ContractionShape& shape, const TargetInfo& target) {
  int rows = even_rows(shape.m);
  int64_t high = ceil_of(shape.m, rows), wide = ceil_of(shape.n, target.lanes(shape.element_bits));
  TileShape best;
  double best_cycles = INFINITY;
  for (int i = 1; i <= std::min<int64_t>(3, high); ++i)
    for (int j = 1; j <= std::min<int64_t>(3, shape.panel > 0 ? shape.panel : wide); ++j) {
      if (i * j + i + j > Facts::kRegisters || (shape.panel > 0 && shape.panel % j != 0)) continue;
      TileShape tile{i * rows, j, target.lanes(shape.element_bits)};
      tile.panel = shape.panel > j ? shape.panel : 0;
      if (double cycles = tile_block_cycles(shape, tile, target); cycles < best_cycles) {
        best = tile;
        best_cycles = cycles;
      }
    }
  return best;
}

double tile_block_cycles(const ContractionShape& shape, const TileShape& tile, const TargetInfo& target) {
  TileBlock block = tile_block(shape, tile);
  ColumnGroups groups = column_groups(shape.n, tile);
  auto column_cost = [&](int wide) {
    // A panel stays near for the next rows; where there are none, all of them pass.
    double panel = products_of(shape) * wide * Facts::kRowBytes,
           passing = shape.m > tile.rows ? panel : static_cast<double>(shape.vector_bytes);
    bool streams = passing > cache_share::kWorkingSet * static_cast<double>(target.l1_bytes);
    auto rest = static_cast<int>(shape.m % tile.rows);
    double cycles =
        static_cast<double>(shape.m / tile.rows) * block_cycles(shape, block, tile.rows, wide, streams);
    return rest > 0 ? cycles + block_cycles(shape, block, rest, wide, streams) : cycles;
  };
  double cycles = static_cast<double>(groups.full_groups) * column_cost(tile.vectors);
  if (groups.rest_groups > 0)
    cycles += static_cast<double>(groups.rest_groups) * column_cost(groups.rest_vectors);
  for (int64_t extent : shape.outer) cycles *= static_cast<double>(extent);
  return cycles + Facts::kConfigureCycles;
}

} // namespace firn::plan
