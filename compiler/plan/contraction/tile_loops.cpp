// See tile_loops.h.
#include "compiler/plan/contraction/tile_loops.h"

#include "compiler/plan/contraction/tile_matrices.h"
#include "compiler/plan/cost_model.h"

#include <algorithm>

namespace firn::plan {
namespace {

// The number of vector operands: one per batch or group.
int64_t vector_outer(const ContractionShape& shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.vector_outer_dims; ++i) count *= shape.outer[static_cast<size_t>(i)];
  return count;
}

// The most steps of one vector that any of `threads` takes, if each group's walk is cut into `split_m` items.
// Items go to threads in order, equally many to each.
int64_t busiest(int64_t outer, const ColumnGroups& groups, int64_t k_extent, int64_t split_m, int threads) {
  int64_t size = (k_extent + split_m - 1) / split_m, items = outer * groups.count() * split_m, max = 0;
  for (int64_t thread = 0, item = 0; thread < threads; ++thread) {
    int64_t end = item + items / threads + (thread < items % threads ? 1 : 0), work = 0;
    for (; item < end; ++item) {
      int64_t group = item / split_m % groups.count(), share = item % split_m;
      int64_t vectors = group < groups.full_groups ? groups.vectors : groups.rest_vectors;
      work += vectors * std::min(size, k_extent - share * size);
    }
    max = std::max(max, work);
  }
  return max;
}

// The unevenness among threads that is accepted for keeping each walk whole.
constexpr double kUneven = 1.04;
constexpr int64_t kMaxSharedItems = 4096;

// One item per group of columns is too few for many threads: each group's walk over the rest is cut, as few
// times as keep threads busy equally long.
void choose_split_m(Tiling& tiling, const ContractionShape& shape, int threads, bool may_cut_rows) {
  if (threads <= 1 || !tiling.columns_outermost || tiling.row_block > 0) return;
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (walk.dim < 0 && !may_cut_rows) return;
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t outer = vector_outer(shape), min = INT64_MAX;
  std::vector<std::pair<int64_t, int64_t>> found; // split_m, steps of the busiest
  for (int64_t wanted = 1; wanted <= walk.k_extent; ++wanted) {
    int64_t size = (walk.k_extent + wanted - 1) / wanted, split_m = (walk.k_extent + size - 1) / size;
    if (!found.empty() && found.back().first == split_m) continue;
    if (split_m > 1 && split_m * outer * groups.count() > kMaxSharedItems) break;
    found.push_back({split_m, busiest(outer, groups, walk.k_extent, split_m, threads)});
    min = std::min(min, found.back().second);
  }
  for (const auto& [split_m, k_extent] : found) {
    tiling.split_m = split_m;
    if (static_cast<double>(k_extent) <= kUneven * static_cast<double>(min)) return;
  }
}

// If tiles of rows keep threads waiting for each other, groups of columns become the outermost loop, provided
// that rows stay near for the next group.
void choose_order(Tiling& tiling, const ContractionShape& shape, const Machine& target, int threads,
                  bool may_cut_rows) {
  constexpr double kGain = 1.08;
  if (threads <= 1 || tiling.columns_outermost || tiling.row_block > 0) return;
  if (shape.scalar_bytes > share_of(target.cpu.l2_bytes, cache_share::kWorkingSet)) return;
  int64_t outer = 1;
  for (int64_t extent : shape.outer) outer *= extent;
  int64_t items = outer > 1 ? outer : (shape.m + tiling.tile.rows - 1) / tiling.tile.rows;
  double by_rows = imbalance(items, threads);
  Tiling other = tiling;
  other.columns_outermost = true;
  choose_split_m(other, shape, threads, may_cut_rows);
  ColumnWalk walk = column_walk(shape, tiling.tile);
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t max = busiest(vector_outer(shape), groups, walk.k_extent, other.split_m, threads),
          all = vector_outer(shape) * groups.total_vectors * walk.k_extent;
  double by_columns = static_cast<double>(max * threads) / static_cast<double>(all);
  if (by_columns * kGain < by_rows) tiling = other;
}

// Weights pass from memory once if all rows are done with a column group while it is near. A long reduction
// needs parts for that, so that one part of both operands stays in the second cache level; many rows need
// blocks of rows.
bool allows_blocks(const DotGeometry& g, const TileShape& tile) {
  return g.contract.size() == 1 && g.shape.outer.empty() && g.shape.m > tile.rows;
}

// Chooses tiles that leave few of `rows` rows over, so that all threads' blocks have equally many tiles, if
// these tiles are about as good.
void fit_tiles_to_blocks(Tiling& tiling, const ContractionShape& shape, const Machine& target, int64_t rows) {
  constexpr double kAsGood = 1.03;
  ContractionShape block = shape;
  block.m = rows;
  TileShape tile = choose_tiling(block, target).tile;
  tile.column_streams = 1; // streams cover all rows
  Tiling fitting = choose_tiling(shape, target, &tile);
  if (fitting.cycles > kAsGood * tiling.cycles) return;
  fitting.columns_outermost = tiling.columns_outermost;
  fitting.split_k = tiling.split_k;
  tiling = fitting;
}

// Checks the tiles of the rows that whole tiles leave.
std::string check_rest(const Tiling& tiling, const ContractionShape& shape) {
  const TileShape& tile = tiling.tile;
  if (tiling.rest_rows > tile.rows) return "whole tiles leave fewer rows than they have";
  if (tiling.rest_splits.empty()) return "";
  if (tiling.rest_splits.size() != static_cast<size_t>(tile.rows))
    return "whole tiles leave 0 to " + std::to_string(tile.rows - 1) + " rows: rest_splits has " +
           std::to_string(tile.rows) + " numbers";
  if (shape.mac.kind == MacKind::TileMatrix || tile.column_streams > 1 || tile.k_interleave > 1)
    return "partial sums of the rows that are left are of vectors, in one stream, k not interleaved";
  return "";
}

} // namespace

void share_out(Tiling& tiling, const ContractionShape& shape, const Machine& target, int threads,
               bool may_cut_rows) {
  if (tiling.tile.column_streams > 1) return;
  choose_order(tiling, shape, target, threads, may_cut_rows);
  choose_split_m(tiling, shape, threads, may_cut_rows);
}

std::string check_split_m(const Tiling& tiling, const ContractionShape& shape, bool may_cut_rows) {
  if (tiling.split_m == 1) return "";
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (!tiling.columns_outermost || tiling.row_block > 0 || (walk.dim < 0 && !may_cut_rows))
    return "split_m wants columns outermost, no blocks of rows, and rows that a tile does not leave";
  int64_t split_m = std::min(tiling.split_m, walk.k_extent), size = (walk.k_extent + split_m - 1) / split_m;
  if (split_m < tiling.split_m || (split_m - 1) * size >= walk.k_extent)
    return "a group of columns walks " + std::to_string(walk.k_extent) +
           " tiles: split_m would leave parts without";
  return "";
}

void choose_blocks(Tiling& tiling, const DotGeometry& g, const Machine& target, int threads,
                   const ContractionPlan* form) {
  const TileShape& tile = tiling.tile;
  int64_t rows = g.shape.m, k_extent = g.contract[0].extent;
  if (form) tiling.split_k = form->tiling.split_k;
  if (tiling.split_k > 1) tiling.columns_outermost = true;
  if (!allows_blocks(g, tile) || target.cpu.l2_bytes == 0) return;
  tiling.columns_outermost = true;
  // The cache holds two groups of columns, the current and the next one, and the results of the block beside
  // a block of rows.
  int64_t column_bytes = bit_width(g.columns.type.dtype) / 8, bytes = bit_width(g.rows.type.dtype) / 8;
  int64_t group_bytes = k_extent * tile.vectors * tile.lanes * column_bytes,
          max = share_of(target.cpu.l2_bytes, cache_share::kColumnGroup);
  // Columns that lie in panels already have all steps of a panel together.
  if (!form && g.panel_columns == 0 && group_bytes > max &&
      rows * k_extent * bytes > share_of(target.cpu.l2_bytes, cache_share::kHandedOn))
    tiling.split_k = static_cast<int>((group_bytes + max - 1) / max);
  int64_t row_bytes = std::max<int64_t>(1, k_extent / tiling.split_k * bytes);
  int64_t room = share_of(target.cpu.l2_bytes, cache_share::kRowBlock);
  int64_t block = std::max<int64_t>(1, room / row_bytes / tile.rows) * tile.rows;
  if (rows <= block) return;
  int64_t blocks = (rows + block - 1) / block; // evenly
  if (threads > 1) {
    blocks = std::min((rows + tile.rows - 1) / tile.rows, (blocks + threads - 1) / threads * threads);
    fit_tiles_to_blocks(tiling, g.shape, target, (rows + blocks - 1) / blocks);
  }
  int64_t tiles = (rows + tile.rows - 1) / tile.rows;
  tiling.row_block = (tiles + blocks - 1) / blocks * tile.rows;
}

std::string check_tiling(const Tiling& tiling, const ContractionShape& shape) {
  if (tiling.tile.k_interleave > 1 && shape.max_k_interleave % tiling.tile.k_interleave != 0)
    return "k can be interleaved by " + std::to_string(shape.max_k_interleave) + " at most here";
  if (tiling.tile.panel > 0 && tiling.tile.panel % tiling.tile.vectors != 0)
    return "a tile takes an even part of its panel";
  if (!tiling.columns_outermost && shape.vector_outer_dims > 0)
    return "columns are outermost where batches or groups have their own";
  if (std::string wrong = check_column_streams(tiling, shape); !wrong.empty()) return wrong;
  if (std::string wrong = check_rest(tiling, shape); !wrong.empty()) return wrong;
  return check_accumulator_tiles(tiling, shape);
}

std::string check_blocks(const Tiling& tiling, const DotGeometry& g) {
  if (tiling.split_k == 1 && tiling.row_block == 0) return "";
  if (!allows_blocks(g, tiling.tile) || !tiling.columns_outermost)
    return "split_k and blocks of rows want one loop of the reduction, no batches, more rows than a tile "
           "has, "
           "and columns outermost";
  if (tiling.split_k > 1 && g.panel_columns > 0) return "what lies in panels already has no split_k";
  if ((tiling.split_k - 1) * g.split_k_extent(tiling.split_k) >= g.contract[0].extent)
    return "split_k would leave parts without any";
  if (tiling.row_block % tiling.tile.rows != 0 || tiling.row_block >= g.shape.m + tiling.tile.rows)
    return "a block of rows is a number of whole tiles of the " + std::to_string(g.shape.m) + " rows";
  return "";
}

} // namespace firn::plan
