// The extents of a contraction, and the groups into which tiles cut its columns.
#include "compiler/plan/contraction/tiling.h"

#include "compiler/plan/contraction/tile_matrices.h"

#include <algorithm>

namespace firn::plan {
namespace {

// The most vectors up to `max` that divide a panel evenly.
int even_part(int64_t panel, int max) {
  while (panel % max != 0) --max;
  return max;
}

} // namespace

void ContractionShape::set_mac(const MacInstruction& of_operands) {
  mac = of_operands;
  int64_t group = mac.k_group();
  k_tail = static_cast<int>(k.back().extent % group);
  k.back().extent = (k.back().extent + group - 1) / group;
  k.back().block /= group;
  if (mac.kind == MacKind::TileMatrix) multiply_in(mac);
  lane_bytes = static_cast<int>(group) * bit_width(mac.rhs) / 8;
}

void ContractionShape::multiply_in(const MacInstruction& matrices) {
  mac = matrices;
  ReductionLoop& loop = k.back();
  int64_t row = TileMatrixFacts::kRowBytes * 8 / (bit_width(matrices.lhs) * matrices.k_group());
  if (loop.block == row && loop.extent % row == 0) loop.block = 0;
}

ColumnGroups column_groups(int64_t n, const TileShape& tile) {
  ColumnGroups groups;
  groups.vectors = tile.vectors;
  groups.lanes = tile.lanes;
  groups.panel_vectors = tile.panel_vectors();
  groups.total_vectors = (n + tile.lanes - 1) / tile.lanes;
  int64_t whole_vectors = tile.k_interleave > 1 ? n / tile.lanes : groups.total_vectors;
  int64_t full_panels = whole_vectors / groups.panel_vectors;
  groups.full_groups = full_panels * (groups.panel_vectors / tile.vectors);
  int64_t rest = groups.total_vectors - full_panels * groups.panel_vectors;
  groups.rest_k_interleave = tile.k_interleave;
  int64_t rest_columns = n - full_panels * groups.panel_vectors * tile.lanes;
  int64_t width = tile.lanes / tile.k_interleave;
  groups.rest_panel_registers = rest == 0 ? 0 : static_cast<int>((rest_columns + width - 1) / width);
  bool is_cut = rest > tile.vectors && tile.k_interleave == 1;
  groups.rest_vectors = is_cut ? even_part(rest, tile.vectors) : static_cast<int>(rest);
  groups.rest_groups = rest == 0 ? 0 : rest / groups.rest_vectors;
  groups.rest_registers = is_cut ? groups.rest_vectors : groups.rest_panel_registers;
  if (tile.whole_panels && rest > 0) groups.rest_panel_registers = groups.panel_vectors;
  return groups;
}

ColumnWalk column_walk(const ContractionShape& shape, const TileShape& tile) {
  ColumnWalk walk;
  for (size_t i = static_cast<size_t>(shape.vector_outer_dims); i < shape.outer.size(); ++i)
    if (shape.outer[i] > walk.k_extent) walk = {static_cast<int>(i), shape.outer[i]};
  if (walk.dim < 0) walk.k_extent = std::max<int64_t>(1, shape.m / tile.rows);
  return walk;
}

} // namespace firn::plan
