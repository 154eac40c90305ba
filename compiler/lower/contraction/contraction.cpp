// The loops around register tiles: segments of rows, groups of columns, outer dims.
#include "compiler/lower/contraction/matrix_tile.h"
#include "compiler/lower/contraction/register_tile.h"
#include "compiler/lower/contraction/tile_stores.h"

#include "compiler/graph/type.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

// A run of tiles along the rows that share one body: `count` tiles of `rows` rows from `first` on. A run of
// one tile has a constant position, so that rows outside the input can be left out of it. If the number of
// rows varies, there are whole tiles, a rest of `rest` rows, and around these the rows at the edges.
struct Segment {
  IntExpr first;
  IntExpr count;
  int rows; // rows of a tile; for a rest, the most there may be
  std::optional<IntExpr> rest = std::nullopt;
  bool at_edge = false; // rows that clip their reduction
};

struct Tile {
  IntExpr row;
  int rows;
  bool at_edge = false;
};

// A tile and its columns.
struct PlacedTile {
  Tile tile;
  IntExpr column_vector;
  int vectors;
};

class ContractionEmitter {
public:
  ContractionEmitter(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), tiling_(tiling), groups_(plan::column_groups(spec.shape.n, tiling.tile)),
        segments_(split_rows()) {
    for (int splits : tiling.rest_splits) {
      rest_tilings_.push_back(tiling);
      rest_tilings_.back().tile.accumulator_splits = splits;
    }
    edge_tiling_ = rest_tilings_.size() > 1 ? rest_tilings_[1] : tiling;
    edge_tiling_.tile.rows = 1;
  }

  void emit() {
    int64_t outer = 1;
    for (int64_t extent : spec_.shape.outer) outer *= extent;
    bool by_groups = tiling_.columns_outermost && tiling_.tile.column_streams == 1;
    FIRN_CHECK(by_groups || !spec_.begins_groups, "groups of columns begin over and over");
    if (tiling_.tile.column_streams > 1) {
      emit_streams();
    } else if (tiling_.row_block > 0 && spec_.finishes_rows) {
      emit_finished_blocks();
    } else if (tiling_.row_block > 0) {
      IntExpr blocks = ceil_div(spec_.m(), tiling_.row_block);
      IntExpr p = b_.set_parallel(blocks * groups_.count());
      IntExpr block = floor_div(p, groups_.count());
      TilePosition position;
      emit_column_group(b_, groups_, floor_mod(p, groups_.count()), [&](const IntExpr& vector, int vectors) {
        begin_group(position, vector, vectors);
        emit_row_block(position, block, blocks, vectors);
      });
    } else if (tiling_.columns_outermost) {
      IntExpr selected = 1; // the outer dims that select other vectors belong outside the columns
      for (int i = 0; i < spec_.shape.vector_outer_dims; ++i)
        selected = selected * spec_.outer(static_cast<size_t>(i));
      IntExpr p = b_.set_parallel(selected * groups_.count() * tiling_.split_m);
      IntExpr share = floor_mod(p, tiling_.split_m), group = floor_div(p, tiling_.split_m);
      TilePosition position;
      position.outer = unflatten(floor_div(group, groups_.count()), 0, spec_.shape.vector_outer_dims);
      emit_column_group(b_, groups_, floor_mod(group, groups_.count()),
                        [&](const IntExpr& vector, int vectors) {
                          begin_group(position, vector, vectors);
                          emit_walk(position, share, vectors);
                        });
    } else if (outer > 1) {
      IntExpr all = 1;
      for (size_t i = 0; i < spec_.shape.outer.size(); ++i) all = all * spec_.outer(i);
      IntExpr p = b_.set_parallel(all);
      TilePosition position;
      position.outer = unflatten(p, 0, static_cast<int>(spec_.shape.outer.size()));
      for (const Segment& segment : segments_)
        loop_over_tiles(segment, [&](const Tile& tile) { emit_groups(position, tile); });
    } else {
      IntExpr tiles = 0;
      for (const Segment& segment : segments_) tiles = tiles + segment.count;
      IntExpr p = b_.set_parallel(tiles);
      TilePosition position;
      position.outer.assign(spec_.shape.outer.size(), IntExpr(0));
      emit_segment_of(p, 0, 0, position);
    }
  }

  void emit_rows(TilePosition& position) { emit_all_segments(position, position.vectors); }

private:
  void begin_group(TilePosition& position, const IntExpr& vector, int vectors) {
    position.column_vector = vector;
    position.vectors = vectors;
    if (spec_.begins_groups) spec_.operands->begin_group(b_, position);
  }

  // Rows are in tiles of tile.rows, the remainder is a tile of its own, and so is every tile with rows that
  // are partly outside.
  std::vector<Segment> split_rows() const {
    int64_t rows = spec_.shape.m;
    int step = tiling_.tile.rows;
    if (spec_.edge_rows || !spec_.m().is_constant()) return split_varying_rows(spec_.m(), step);
    std::vector<Segment> segments;
    int64_t full = rows / step;
    int rest = static_cast<int>(rows % step);
    for (int64_t i = 0; i < full; ++i) {
      bool inside = tile_is_inside(spec_, i * step, step);
      if (inside && !segments.empty() && segments.back().rows == step &&
          tile_is_inside(spec_, segments.back().first.value(), step))
        segments.back().count = segments.back().count + 1;
      else
        segments.push_back({i * step, 1, step});
    }
    if (rest > 0) segments.push_back({full * step, 1, rest});
    return segments;
  }

  std::vector<Segment> split_varying_rows(const IntExpr& rows, int step) const {
    const EdgeRows* edges = spec_.edge_rows.get();
    IntExpr first = edges ? edges->first_inside : IntExpr(0), end = edges ? edges->end_inside : rows;
    IntExpr whole = floor_div(end - first, step), rest = end - first - whole * step;
    std::vector<Segment> segments;
    if (edges) segments.push_back({0, first, 1, std::nullopt, /*at_edge=*/true});
    segments.push_back({first, whole, step});
    // Higher tiles than there can be would read beyond the operand.
    auto max = static_cast<int>(std::min<int64_t>({step - 1, rest.upper_bound(), spec_.shape.m}));
    if (max > 0) segments.push_back({first + whole * step, ceil_div(end - first, step) - whole, max, rest});
    if (edges) segments.push_back({end, rows - end, 1, std::nullopt, /*at_edge=*/true});
    // Code for rows that no run has may name places before the operand.
    if (rows.upper_bound() > 0)
      std::erase_if(segments, [](const Segment& segment) { return segment.count.upper_bound() <= 0; });
    return segments;
  }

  std::vector<IntExpr> unflatten(IntExpr index, int first, int last) const {
    std::vector<IntExpr> values(static_cast<size_t>(last - first));
    for (int i = last - 1; i >= first; --i) {
      IntExpr extent = at_least_one(spec_.outer(static_cast<size_t>(i)));
      values[static_cast<size_t>(i - first)] = i == first ? index : floor_mod(index, extent);
      index = floor_div(index, extent);
    }
    return values;
  }

  // Emits groups of equal parts of the columns side by side, then the remaining ones.
  void emit_streams() {
    FIRN_CHECK(!spec_.edge_columns && !spec_.edge_rows, "streams of columns whose number varies");
    int64_t each = groups_.full_groups / tiling_.tile.column_streams,
            left = each * tiling_.tile.column_streams;
    IntExpr p = b_.set_parallel(each + groups_.count() - left);
    TilePosition position;
    position.row = 0;
    position.outer.assign(spec_.shape.outer.size(), IntExpr(0));
    auto rows = static_cast<int>(spec_.shape.m);
    auto side_by_side = [&] {
      std::vector<TilePosition> positions(static_cast<size_t>(tiling_.tile.column_streams), position);
      for (size_t i = 0; i < positions.size(); ++i)
        positions[i].column_vector = (p + static_cast<int64_t>(i) * each) * groups_.vectors;
      emit_register_tiles(b_, spec_, tiling_, positions, rows, groups_.vectors);
      return std::vector<Register>{};
    };
    if (left == groups_.count()) return (void)side_by_side();
    auto alone = [&](const IntExpr& vector, int vectors) {
      position.column_vector = vector;
      emit_tile(position, {0, rows}, vectors);
    };
    b_.if_then_else(b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(p), b_.index(each)),
                    side_by_side, [&] {
                      emit_column_group(b_, groups_, max(p - each, 0) + left, alone);
                      return std::vector<Register>{};
                    });
  }

  // One share of a column group's walk, in equal steps: the last share may have fewer.
  void emit_walk(TilePosition& position, const IntExpr& share, int vectors) {
    plan::ColumnWalk walk = plan::column_walk(spec_.shape, tiling_.tile);
    IntExpr k_extent = walk.dim < 0 ? segments_[0].count : spec_.outer(static_cast<size_t>(walk.dim));
    if (k_extent.is_constant()) k_extent = walk.k_extent;
    IntExpr size = ceil_div(k_extent, tiling_.split_m);
    if (walk.dim < 0 && tiling_.split_m > 1)
      return emit_outer_loops(
          position, {}, [&](TilePosition& at) { emit_tiles(at, share, tiling_.split_m, size, vectors); });
    Range range{walk.dim, share * size, min(share * size + size, k_extent)};
    emit_outer_loops(position, range, [&](TilePosition& at) { emit_all_segments(at, vectors); });
  }

  // The rest of an outer dim.
  struct Range {
    int dim = -1;
    IntExpr first = 0, end = 0;
  };
  void emit_outer_loops(TilePosition& position, const Range& range,
                        const std::function<void(TilePosition&)>& body) {
    if (position.outer.size() == spec_.shape.outer.size()) return body(position);
    bool is_cut = tiling_.split_m > 1 && range.dim == static_cast<int>(position.outer.size());
    IntExpr first = is_cut ? range.first : IntExpr(0);
    IntExpr end = is_cut ? range.end : spec_.outer(position.outer.size());
    b_.loop(first, end, 1, [&](const IntExpr& iv) {
      position.outer.push_back(iv);
      emit_outer_loops(position, range, body);
      position.outer.pop_back();
    });
  }

  using TileBody = std::function<void(const Tile&)>;

  void loop_over_tiles(const Segment& segment, const TileBody& body) {
    if (segment.rest) return emit_rest(segment.first, *segment.rest, segment.rows, body);
    b_.loop(0, segment.count, 1, [&](const IntExpr& i) {
      body({i * segment.rows + segment.first, segment.rows, segment.at_edge});
    });
  }

  // Emits `rest` rows, at most `most`, in ever smaller tiles.
  void emit_rest(const IntExpr& row, const IntExpr& rest, int max, const TileBody& body) {
    IntExpr done = 0;
    int first = tiling_.rest_rows > 0 ? tiling_.rest_rows : tiling_.tile.rows;
    for (int rows = first; rows > 0; rows /= 2) {
      if (rows > max) continue;
      IntExpr end = floor_div(rest, rows) * rows;
      b_.loop(done, end, rows, [&](const IntExpr& at) { body({row + at, rows}); });
      done = end;
    }
  }

  void emit_tile(TilePosition& position, const Tile& tile, int vectors) {
    if (is_matrix())
      return emit_run(position, 0, 1, [&](const IntExpr&) {
        return PlacedTile{tile, position.column_vector, vectors};
      });
    position.row = tile.row;
    if (tile.at_edge)
      return emit_register_tile(b_, spec_.edge_rows->spec, edge_tiling_, position, tile.rows, vectors);
    if (!spec_.edge_columns) return emit_tile_by(spec_, position, tile, vectors);
    const ContractionSpec& edge = *spec_.edge_columns;
    IntExpr first = position.column_vector * tiling_.tile.lanes, end = first + vectors * tiling_.tile.lanes;
    auto emit_by = [&](const ContractionSpec& spec) {
      return [&] { return emit_tile_by(spec, position, tile, vectors), std::vector<Register>{}; };
    };
    auto compare = [&](kernel::Predicate predicate, const IntExpr& column) {
      return b_.compare(kernel::OpKind::SCmp, predicate, b_.index(column),
                        b_.index(edge.columns_end->columns));
    };
    auto emit_at_edge = [&] {
      b_.if_then_else(compare(kernel::Predicate::Lt, first), emit_by(edge),
                      [] { return std::vector<Register>{}; });
      return std::vector<Register>{};
    };
    // A tile that is wider than any rest of columns has no code that reads all of it.
    if (end.lower_bound() > edge.columns_end->columns.upper_bound()) return (void)emit_at_edge();
    b_.if_then_else(compare(kernel::Predicate::Le, end), emit_by(spec_), emit_at_edge);
  }

  void emit_tile_by(const ContractionSpec& spec, TilePosition& position, const Tile& tile, int vectors) {
    bool is_rest = tile.rows < tiling_.tile.rows && !rest_tilings_.empty();
    emit_register_tile(b_, spec, is_rest ? rest_tilings_[static_cast<size_t>(tile.rows)] : tiling_, position,
                       tile.rows, vectors);
  }

  bool is_matrix() const { return spec_.shape.mac.kind == MacKind::TileMatrix; }
  using PlaceOf = std::function<PlacedTile(const IntExpr& number)>;

  // The tiles with numbers [first, end), which have one shape.
  void emit_run(TilePosition& position, const IntExpr& first, const IntExpr& end, const PlaceOf& place) {
    if (tiling_.interleaves_epilogue && !(end - first == IntExpr(1)))
      return emit_interleaved_run(position, first, end, place);
    if (is_matrix()) {
      int max = tiling_.accumulator_tiles;
      IntExpr batches = ceil_div(end - first, max);
      return b_.loop(0, batches, 1, [&](const IntExpr& batch) {
        IntExpr begin = first + batch * max;
        emit_matrix_tiles(position, begin, batches == IntExpr(1) ? end : min(begin + max, end), place);
      });
    }
    b_.loop(first, end, 1, [&](const IntExpr& number) {
      PlacedTile placed = place(number);
      position.column_vector = placed.column_vector;
      emit_tile(position, placed.tile, placed.vectors);
    });
  }

  // Runs each tile's products while the epilogue takes the sums of the tile before.
  void emit_interleaved_run(TilePosition& position, const IntExpr& first, const IntExpr& end,
                            const PlaceOf& place) {
    auto tile_at = [&](const IntExpr& number) {
      PlacedTile placed = place(number);
      position.row = placed.tile.row;
      position.column_vector = placed.column_vector;
      return MatrixTile(b_, spec_, tiling_, position, placed.tile.rows, placed.vectors, 0);
    };
    IntExpr second = min(first + 1, end);
    b_.loop(first, second, 1,
            [&](const IntExpr& number) { tile_at(number).emit_products(0, /*is_first=*/true); });
    b_.loop(second, end, 1, [&](const IntExpr& number) {
      MatrixTile before = tile_at(number - 1);
      tile_at(number).emit_products_behind(before);
    });
    b_.loop(max(end - 1, first), end, 1, [&](const IntExpr& number) { tile_at(number).emit_stores(); });
  }

  // Emits the tiles whose sums are in memory at the same time.
  void emit_matrix_tiles(TilePosition& position, const IntExpr& first, const IntExpr& end,
                         const PlaceOf& place) {
    auto for_each = [&](const std::function<void(MatrixTile&)>& body) {
      b_.loop(first, end, 1, [&](const IntExpr& number) {
        PlacedTile placed = place(number);
        position.row = placed.tile.row;
        position.column_vector = placed.column_vector;
        MatrixTile tile(b_, spec_, tiling_, position, placed.tile.rows, placed.vectors, number - first);
        body(tile);
      });
    };
    for_each([](MatrixTile& tile) { tile.emit_products(0, /*is_first=*/true); });
    b_.loop(1, tiling_.k_blocks, 1, [&](const IntExpr& block) {
      for_each([&](MatrixTile& tile) { tile.emit_products(block, /*is_first=*/false); });
    });
    for_each([](MatrixTile& tile) { tile.emit_stores(); });
  }

  void emit_all_segments(TilePosition& position, int vectors) {
    for (const Segment& segment : segments_) {
      if (segment.rest) {
        loop_over_tiles(segment, [&](const Tile& tile) { emit_tile(position, tile, vectors); });
        continue;
      }
      IntExpr column = position.column_vector;
      emit_run(position, 0, segment.count, [&](const IntExpr& i) {
        return PlacedTile{{i * segment.rows + segment.first, segment.rows, segment.at_edge}, column, vectors};
      });
    }
  }

  // The tiles of one block of rows.
  void emit_row_block(TilePosition& position, const IntExpr& block, const IntExpr& blocks, int vectors) {
    emit_tiles(position, block, blocks, tiling_.row_block / tiling_.tile.rows, vectors);
  }

  // Emits the `tiles` tiles of block `block`; tiles of other heights belong to the last block.
  void emit_tiles(TilePosition& position, const IntExpr& block, const IntExpr& blocks, const IntExpr& tiles,
                  int vectors) {
    for (const Segment& segment : segments_) {
      bool main = segment.first == IntExpr(0) && !segment.rest;
      IntExpr first = main ? block * tiles : blocks - 1;
      IntExpr end = main ? min(block * tiles + tiles, segment.count) : block + 1;
      IntExpr column = position.column_vector;
      if (main)
        emit_run(position, first, end, [&](const IntExpr& i) {
          return PlacedTile{{i * segment.rows, segment.rows}, column, vectors};
        });
      else
        b_.loop(first, end, 1,
                [&](const IntExpr&) { emit_last(position, segment, block, blocks, tiles, vectors); });
    }
  }

  void emit_last(TilePosition& position, const Segment& segment, const IntExpr& block, const IntExpr& blocks,
                 const IntExpr& tiles, int vectors) {
    if (segment.rest)
      return loop_over_tiles(segment, [&](const Tile& tile) { emit_tile(position, tile, vectors); });
    // Rows depend on the block's number, so that blocks are seen to share none: results may lie over
    // operands.
    IntExpr rows = tiles * tiling_.tile.rows;
    emit_tile(position, {block * rows + (segment.first - (blocks - 1) * rows), segment.rows}, vectors);
  }

  // Whole blocks of rows, one after the other.
  void emit_finished_blocks() {
    IntExpr blocks = ceil_div(spec_.m(), tiling_.row_block);
    IntExpr block = b_.set_parallel(blocks);
    b_.loop(0, groups_.count(), 1, [&](const IntExpr& group) {
      TilePosition position;
      emit_column_group(b_, groups_, group, [&](const IntExpr& vector, int vectors) {
        begin_group(position, vector, vectors);
        emit_row_block(position, block, blocks, vectors);
      });
    });
    spec_.result->finish_rows(block * tiling_.row_block, min((block + 1) * tiling_.row_block, spec_.m()));
  }

  // All columns of one row of tiles.
  void emit_groups(TilePosition& position, const Tile& tile) {
    position.row = tile.row;
    if (spec_.widens_rows) spec_.operands->begin_rows(b_, position, tile.rows);
    emit_run(position, 0, groups_.full_groups, [&](const IntExpr& group) {
      return PlacedTile{tile, group * groups_.vectors, groups_.vectors};
    });
    emit_run(position, 0, groups_.rest_groups, [&](const IntExpr& group) {
      return PlacedTile{tile, group * groups_.rest_vectors + groups_.first_rest_vector(),
                        groups_.rest_vectors};
    });
  }

  // The tile of number p when tiles themselves are the parallel loop: a chain of tests over the segments.
  void emit_segment_of(const IntExpr& p, size_t segment_number, const IntExpr& first_tile,
                       TilePosition& position) {
    const Segment& segment = segments_[segment_number];
    auto body = [&] {
      IntExpr row =
          segment.count == IntExpr(1) ? segment.first : (p - first_tile) * segment.rows + segment.first;
      if (segment.rest)
        loop_over_tiles(segment, [&](const Tile& tile) { emit_groups(position, tile); });
      else
        emit_groups(position, {row, segment.rows, segment.at_edge});
      return std::vector<Register>{};
    };
    if (segment_number + 1 == segments_.size()) {
      body();
      return;
    }
    Register here = b_.compare(kernel::OpKind::SCmp, kernel::Predicate::Lt, b_.index(p),
                               b_.index(first_tile + segment.count));
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
  std::vector<plan::Tiling> rest_tilings_; // by rows of the rest
  plan::Tiling edge_tiling_;
};

} // namespace

void emit_column_group(Builder& b, const plan::ColumnGroups& groups, const IntExpr& group,
                       const std::function<void(const IntExpr& vector, int vectors)>& body) {
  // The position must not be before the last panel, because that tells its groups apart.
  IntExpr rest = groups.rest_groups == 1 ? IntExpr(0) : max(group - groups.full_groups, 0);
  IntExpr last = rest * groups.rest_vectors + groups.first_rest_vector();
  if (group.lower_bound() >= groups.full_groups) return body(last, groups.rest_vectors);
  if (groups.rest_groups == 0) return body(group * groups.vectors, groups.vectors);
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
        body(last, groups.rest_vectors);
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
