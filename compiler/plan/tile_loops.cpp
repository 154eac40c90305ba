// See tile_loops.h.
#include "compiler/plan/tile_loops.h"

#include "compiler/plan/cost_model.h"

#include <algorithm>

namespace firn::plan {
namespace {

// How many operands in lanes there are: of batches, or groups.
int64_t vector_outer(const ContractionShape& shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.vector_outer_dims; ++i) count *= shape.outer[static_cast<size_t>(i)];
  return count;
}

// What the busiest of `threads` does where items are each group's walk in `shares` parts: they come in order,
// and every thread takes as many as any other. In steps of one vector.
int64_t busiest(int64_t outer, const ColumnGroups& groups, int64_t steps, int64_t shares, int threads) {
  int64_t size = (steps + shares - 1) / shares, items = outer * groups.count() * shares, most = 0;
  for (int64_t thread = 0, item = 0; thread < threads; ++thread) {
    int64_t end = item + items / threads + (thread < items % threads ? 1 : 0), work = 0;
    for (; item < end; ++item) {
      int64_t group = item / shares % groups.count(), share = item % shares;
      int64_t vectors = group < groups.full_groups ? groups.vectors : groups.rest_vectors;
      work += vectors * std::min(size, steps - share * size);
    }
    most = std::max(most, work);
  }
  return most;
}

// How much longer than needed threads may be busy, if each walk stays whole for that.
constexpr double kUneven = 1.04;
constexpr int64_t kMaxSharedItems = 4096;

// A group of columns at a time is too few items for many threads: each group's walk over the rest is cut, as
// few times as leave threads busy for as long.
void choose_shares(Tiling& tiling, const ContractionShape& shape, int threads, bool may_cut_rows) {
  if (threads <= 1 || !tiling.columns_outermost || tiling.row_block > 0) return;
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (walk.dim < 0 && !may_cut_rows) return;
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t outer = vector_outer(shape), least = INT64_MAX;
  std::vector<std::pair<int64_t, int64_t>> found; // shares, steps of the busiest
  for (int64_t wanted = 1; wanted <= walk.steps; ++wanted) {
    int64_t size = (walk.steps + wanted - 1) / wanted, shares = (walk.steps + size - 1) / size;
    if (!found.empty() && found.back().first == shares) continue;
    if (shares > 1 && shares * outer * groups.count() > kMaxSharedItems) break;
    found.push_back({shares, busiest(outer, groups, walk.steps, shares, threads)});
    least = std::min(least, found.back().second);
  }
  for (const auto& [shares, steps] : found) {
    tiling.shares = shares;
    if (static_cast<double>(steps) <= kUneven * static_cast<double>(least)) return;
  }
}

// Tiles of rows that leave threads waiting for each other make room for groups of columns, where rows stay
// near for the next group.
void choose_order(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target, int threads,
                  bool may_cut_rows) {
  constexpr double kGain = 1.08;
  if (threads <= 1 || tiling.columns_outermost || tiling.row_block > 0) return;
  if (shape.scalar_bytes > share_of(target.l2_bytes, cache_share::kWorkingSet)) return;
  int64_t outer = 1;
  for (int64_t extent : shape.outer) outer *= extent;
  int64_t items = outer > 1 ? outer : (shape.m + tiling.tile.rows - 1) / tiling.tile.rows;
  double by_rows = imbalance(items, threads);
  Tiling other = tiling;
  other.columns_outermost = true;
  choose_shares(other, shape, threads, may_cut_rows);
  ColumnWalk walk = column_walk(shape, tiling.tile);
  ColumnGroups groups = column_groups(shape.n, tiling.tile);
  int64_t most = busiest(vector_outer(shape), groups, walk.steps, other.shares, threads),
          all = vector_outer(shape) * groups.total_vectors * walk.steps;
  double by_columns = static_cast<double>(most * threads) / static_cast<double>(all);
  if (by_columns * kGain < by_rows) tiling = other;
}

// Weights pass from memory once if all rows are done with a column group while it is near. Of a long
// reduction that takes parts, so that one part of both operands stays in the second cache level; of many
// rows, blocks of rows.
bool allows_blocks(const DotGeometry& g, const TileShape& tile) {
  return g.contract.size() == 1 && g.shape.outer.empty() && g.shape.m > tile.rows;
}

// Tiles that leave little of so many rows, so that each thread's blocks have as many as any other's; if they
// are about as good.
void fit_tiles_to_blocks(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target,
                         int64_t rows) {
  constexpr double kAsGood = 1.03;
  ContractionShape block = shape;
  block.m = rows;
  TileShape tile = choose_tiling(block, target).tile;
  tile.column_streams = 1; // which are of all rows
  Tiling fitting = choose_tiling(shape, target, &tile);
  if (fitting.cycles > kAsGood * tiling.cycles) return;
  fitting.columns_outermost = tiling.columns_outermost;
  fitting.parts = tiling.parts;
  tiling = fitting;
}

} // namespace

void share_out(Tiling& tiling, const ContractionShape& shape, const TargetInfo& target, int threads,
               bool may_cut_rows) {
  if (tiling.tile.column_streams > 1) return;
  choose_order(tiling, shape, target, threads, may_cut_rows);
  choose_shares(tiling, shape, threads, may_cut_rows);
}

std::string check_shares(const Tiling& tiling, const ContractionShape& shape, bool may_cut_rows) {
  if (tiling.shares == 1) return "";
  ColumnWalk walk = column_walk(shape, tiling.tile);
  if (!tiling.columns_outermost || tiling.row_block > 0 || (walk.dim < 0 && !may_cut_rows))
    return "shares want columns outermost, no blocks of rows, and lines that a tile does not leave";
  int64_t shares = std::min(tiling.shares, walk.steps), size = (walk.steps + shares - 1) / shares;
  if (shares < tiling.shares || (shares - 1) * size >= walk.steps)
    return "a group of columns walks " + std::to_string(walk.steps) + " steps: shares would be left without";
  return "";
}

void choose_blocks(Tiling& tiling, const DotGeometry& g, const TargetInfo& target, int threads,
                   const ContractionPlan* form) {
  const TileShape& tile = tiling.tile;
  int64_t rows = g.shape.m, steps = g.contract[0].extent;
  if (form) tiling.parts = form->tiling.parts;
  if (tiling.parts > 1) tiling.columns_outermost = true;
  if (!allows_blocks(g, tile) || target.l2_bytes == 0) return;
  tiling.columns_outermost = true;
  // Beside a block of rows the cache holds two groups of columns, the one at hand and the one on its way,
  // and the results of the block.
  int64_t column_bytes = bit_width(g.columns.type.dtype) / 8, bytes = bit_width(g.rows.type.dtype) / 8;
  int64_t group_bytes = steps * tile.vectors * tile.lanes * column_bytes,
          most = share_of(target.l2_bytes, cache_share::kColumnGroup);
  // What lies in panels already has all steps of each together.
  if (!form && g.panel_columns == 0 && group_bytes > most &&
      rows * steps * bytes > share_of(target.l2_bytes, cache_share::kHandedOn))
    tiling.parts = static_cast<int>((group_bytes + most - 1) / most);
  int64_t row_bytes = std::max<int64_t>(1, steps / tiling.parts * bytes);
  int64_t room = share_of(target.l2_bytes, cache_share::kRowBlock);
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

std::string check_blocks(const Tiling& tiling, const DotGeometry& g) {
  if (tiling.parts == 1 && tiling.row_block == 0) return "";
  if (!allows_blocks(g, tiling.tile) || !tiling.columns_outermost)
    return "parts and blocks of rows want one loop of the reduction, no batches, more rows than a tile has, "
           "and columns outermost";
  if (tiling.parts > 1 && g.panel_columns > 0) return "what lies in panels already has no parts";
  if ((tiling.parts - 1) * g.part_steps(tiling.parts) >= g.contract[0].extent)
    return "parts would be left without steps";
  if (tiling.row_block % tiling.tile.rows != 0 || tiling.row_block >= g.shape.m + tiling.tile.rows)
    return "a block of rows is a number of whole tiles of the " + std::to_string(g.shape.m) + " rows";
  return "";
}

} // namespace firn::plan
