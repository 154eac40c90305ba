// The loops around register tiles: segments of rows, groups of columns, outer dims.
#include "compiler/lower/contraction/register_tile.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

// A run of tiles along the rows that share one body: `count` tiles of `rows` rows from `first` on. A run of
// one tile has a constant position, so that rows outside the input can be left out of it.
struct Segment {
  int64_t first;
  int64_t count;
  int rows;
};

class ContractionEmitter {
public:
  ContractionEmitter(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), tiling_(tiling), groups_(plan::column_groups(spec.shape.n, tiling.tile)),
        segments_(split_rows()) {}

  void emit() {
    int64_t outer = 1;
    for (int64_t extent : spec_.shape.outer) outer *= extent;
    if (tiling_.row_block > 0 && spec_.finish_rows) {
      emit_finished_blocks();
    } else if (tiling_.row_block > 0) {
      int64_t blocks = (spec_.shape.m + tiling_.row_block - 1) / tiling_.row_block;
      IntExpr p = b_.set_parallel(blocks * groups_.count());
      IntExpr block = floor_div(p, groups_.count());
      TilePosition position;
      emit_column_group(b_, groups_, floor_mod(p, groups_.count()), [&](const IntExpr& vector, int vectors) {
        position.column_vector = vector;
        emit_row_block(position, block, blocks, vectors);
      });
    } else if (tiling_.columns_outermost) {
      int64_t selected = 1; // the outer dims that select other vectors belong outside the columns
      for (int i = 0; i < spec_.shape.vector_outer_dims; ++i)
        selected *= spec_.shape.outer[static_cast<size_t>(i)];
      IntExpr p = b_.set_parallel(selected * groups_.count() * tiling_.shares);
      IntExpr share = floor_mod(p, tiling_.shares), group = floor_div(p, tiling_.shares);
      TilePosition position;
      position.outer = unflatten(floor_div(group, groups_.count()), 0, spec_.shape.vector_outer_dims);
      emit_column_group(b_, groups_, floor_mod(group, groups_.count()),
                        [&](const IntExpr& vector, int vectors) {
                          position.column_vector = vector;
                          emit_walk(position, share, vectors);
                        });
    } else if (outer > 1) {
      IntExpr p = b_.set_parallel(outer);
      TilePosition position;
      position.outer = unflatten(p, 0, static_cast<int>(spec_.shape.outer.size()));
      for (const Segment& segment : segments_)
        loop_over_tiles(segment, [&](const IntExpr& row) {
          position.row = row;
          emit_groups(position, segment.rows);
        });
    } else {
      int64_t tiles = 0;
      for (const Segment& segment : segments_) tiles += segment.count;
      IntExpr p = b_.set_parallel(tiles);
      TilePosition position;
      position.outer.assign(spec_.shape.outer.size(), IntExpr(0));
      emit_segment_of(p, 0, 0, position);
    }
  }

  void emit_rows(TilePosition& position) { emit_all_segments(position, position.vectors); }

private:
  // Rows in tiles of tile.rows; a remainder is spread so that the last two kinds of tile differ by one row at
  // most when positions do not matter, and edge tiles stand alone when rows near the edges are partly
  // outside.
  std::vector<Segment> split_rows() const {
    int64_t rows = spec_.shape.m;
    int step = tiling_.tile.rows;
    std::vector<Segment> segments;
    int64_t full = rows / step;
    int rest = static_cast<int>(rows % step);
    for (int64_t i = 0; i < full; ++i) {
      bool inside = tile_is_inside(spec_, i * step, step);
      if (inside && !segments.empty() && segments.back().rows == step &&
          tile_is_inside(spec_, segments.back().first, step))
        ++segments.back().count;
      else
        segments.push_back({i * step, 1, step});
    }
    if (rest > 0) segments.push_back({full * step, 1, rest});
    return segments;
  }

  std::vector<IntExpr> unflatten(IntExpr index, int first, int last) const {
    std::vector<IntExpr> values(static_cast<size_t>(last - first));
    for (int i = last - 1; i >= first; --i) {
      int64_t extent = spec_.shape.outer[static_cast<size_t>(i)];
      values[static_cast<size_t>(i - first)] = i == first ? index : floor_mod(index, extent);
      index = floor_div(index, extent);
    }
    return values;
  }

  // One share of what a group of columns walks over, in equal steps: the last share may have fewer.
  void emit_walk(TilePosition& position, const IntExpr& share, int vectors) {
    plan::ColumnWalk walk = plan::column_walk(spec_.shape, tiling_.tile);
    int64_t size = (walk.steps + tiling_.shares - 1) / tiling_.shares;
    if (walk.dim < 0 && tiling_.shares > 1)
      return emit_outer_loops(
          position, {}, [&](TilePosition& at) { emit_tiles(at, share, tiling_.shares, size, vectors); });
    Range range{walk.dim, share * size, min(share * size + size, IntExpr(walk.steps))};
    emit_outer_loops(position, range, [&](TilePosition& at) { emit_all_segments(at, vectors); });
  }

  // What is left of an outer dim.
  struct Range {
    int dim = -1;
    IntExpr first = 0, end = 0;
  };
  void emit_outer_loops(TilePosition& position, const Range& range,
                        const std::function<void(TilePosition&)>& body) {
    if (position.outer.size() == spec_.shape.outer.size()) return body(position);
    bool is_cut = tiling_.shares > 1 && range.dim == static_cast<int>(position.outer.size());
    IntExpr first = is_cut ? range.first : IntExpr(0);
    IntExpr end = is_cut ? range.end : IntExpr(spec_.shape.outer[position.outer.size()]);
    b_.loop(first, end, 1, [&](const IntExpr& iv) {
      position.outer.push_back(iv);
      emit_outer_loops(position, range, body);
      position.outer.pop_back();
    });
  }

  void loop_over_tiles(const Segment& segment, const std::function<void(const IntExpr& row)>& body) {
    b_.loop(0, segment.count, 1, [&](const IntExpr& i) { body(i * segment.rows + segment.first); });
  }

  void emit_all_segments(TilePosition& position, int vectors) {
    for (const Segment& segment : segments_)
      loop_over_tiles(segment, [&](const IntExpr& row) {
        position.row = row;
        emit_register_tile(b_, spec_, tiling_, position, segment.rows, vectors);
      });
  }

  // The tiles of one block of rows.
  void emit_row_block(TilePosition& position, const IntExpr& block, int64_t blocks, int vectors) {
    emit_tiles(position, block, blocks, tiling_.row_block / tiling_.tile.rows, vectors);
  }

  // Those of number `block`, `tiles` of them; tiles of another height than most belong to the last block.
  void emit_tiles(TilePosition& position, const IntExpr& block, int64_t blocks, int64_t tiles, int vectors) {
    int64_t rows = tiles * tiling_.tile.rows;
    for (const Segment& segment : segments_) {
      bool main = segment.first == 0;
      IntExpr first = main ? block * tiles : IntExpr(blocks - 1);
      IntExpr end = main ? min(block * tiles + tiles, segment.count) : block + 1;
      b_.loop(first, end, 1, [&](const IntExpr& i) {
        // Of the block's number, so that blocks are seen to share no rows: results may lie over operands.
        position.row = main ? i * segment.rows : block * rows + (segment.first - (blocks - 1) * rows);
        emit_register_tile(b_, spec_, tiling_, position, segment.rows, vectors);
      });
    }
  }

  // Whole blocks of rows, one after the other.
  void emit_finished_blocks() {
    int64_t blocks = (spec_.shape.m + tiling_.row_block - 1) / tiling_.row_block;
    IntExpr block = b_.set_parallel(blocks);
    b_.loop(0, groups_.count(), 1, [&](const IntExpr& group) {
      TilePosition position;
      emit_column_group(b_, groups_, group, [&](const IntExpr& vector, int vectors) {
        position.column_vector = vector;
        emit_row_block(position, block, blocks, vectors);
      });
    });
    spec_.finish_rows(block * tiling_.row_block,
                      min((block + 1) * tiling_.row_block, IntExpr(spec_.shape.m)));
  }

  // All columns of one row of tiles.
  void emit_groups(TilePosition& position, int rows) {
    b_.loop(0, groups_.full_groups, 1, [&](const IntExpr& group) {
      position.column_vector = group * groups_.vectors;
      emit_register_tile(b_, spec_, tiling_, position, rows, groups_.vectors);
    });
    if (groups_.rest_vectors > 0) {
      position.column_vector = groups_.full_groups * groups_.vectors;
      emit_register_tile(b_, spec_, tiling_, position, rows, groups_.rest_vectors);
    }
  }

  // The tile of number p when tiles themselves are the parallel loop: a chain of tests over the segments.
  void emit_segment_of(const IntExpr& p, size_t segment_number, int64_t first_tile, TilePosition& position) {
    const Segment& segment = segments_[segment_number];
    auto body = [&] {
      position.row =
          segment.count == 1 ? IntExpr(segment.first) : (p - first_tile) * segment.rows + segment.first;
      emit_groups(position, segment.rows);
      return std::vector<Register>{};
    };
    if (segment_number + 1 == segments_.size()) {
      body();
      return;
    }
    kernel::MachineType index_type{kernel::Scalar::Index, 1};
    Register here = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(p),
                               b_.constant_int(index_type, first_tile + segment.count));
    b_.if_then_else(here, body, [&] {
      emit_segment_of(p, segment_number + 1, first_tile + segment.count, position);
      return std::vector<Register>{};
    });
  }

  Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  plan::ColumnGroups groups_;
  std::vector<Segment> segments_;
};

} // namespace

void emit_column_group(Builder& b, const plan::ColumnGroups& groups, const IntExpr& group,
                       const std::function<void(const IntExpr& vector, int vectors)>& body) {
  if (groups.full_groups == 0) return body(0, groups.rest_vectors);
  if (groups.rest_vectors == 0) return body(group * groups.vectors, groups.vectors);
  kernel::MachineType index_type{kernel::Scalar::Index, 1};
  Register is_full = b.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b.index(group),
                               b.constant_int(index_type, groups.full_groups));
  b.if_then_else(
      is_full,
      [&] {
        body(group * groups.vectors, groups.vectors);
        return std::vector<Register>{};
      },
      [&] {
        body(groups.full_groups * groups.vectors, groups.rest_vectors);
        return std::vector<Register>{};
      });
}

void emit_contraction(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling) {
  ContractionEmitter(builder, spec, tiling).emit();
}

void emit_row_tiles(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                    TilePosition position) {
  ContractionEmitter(builder, spec, tiling).emit_rows(position);
}

} // namespace firn::lower
