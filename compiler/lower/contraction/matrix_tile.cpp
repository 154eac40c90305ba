// The reduction nest of a block of tile matrices. Rows that whole tiles leave are computed by a tile that
// begins earlier; it passes on only the sums that no other tile stores.
#include "compiler/lower/contraction/matrix_tile.h"

#include "compiler/lower/contraction/group_requests.h"
#include "compiler/lower/contraction/register_tile.h"
#include "compiler/lower/contraction/tile_stores.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;

OpKind product_op(const plan::MacInstruction& product) {
  if (is_float(product.lhs)) return OpKind::TileDotBF16;
  if (is_signed(product.lhs)) return is_signed(product.rhs) ? OpKind::TileDotS8S8 : OpKind::TileDotS8U8;
  return is_signed(product.rhs) ? OpKind::TileDotU8S8 : OpKind::TileDotU8U8;
}

} // namespace

MatrixTile::MatrixTile(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                       TilePosition position, int rows, int vectors, IntExpr place)
    : b_(builder), spec_(spec), tiling_(tiling), block_(plan::tile_block(spec.shape, tiling.tile)),
      product_(product_op(spec.shape.mac)), position_(std::move(position)), rows_(rows),
      high_(block_.tiles_for(rows)), before_(std::max(0, -block_.first_row(0, rows))),
      first_accumulator_(std::move(place) * largest_tile(spec.shape, tiling)) {
  position_.vectors = vectors;
  set_tiles();
}

void MatrixTile::emit_products(const IntExpr& k_block, bool is_first) {
  is_first ? zero_accumulators() : transfer_accumulators(/*loads=*/true);
  std::vector<IntExpr> k(spec_.shape.k.size());
  emit_reduction(k_block, 0, k);
  transfer_accumulators(/*loads=*/false);
}

void MatrixTile::emit_products_behind(MatrixTile& before) {
  zero_accumulators();
  interleaved_ = &before;
  std::vector<IntExpr> k(spec_.shape.k.size());
  emit_reduction(0, 0, k);
  interleaved_ = nullptr;
  transfer_accumulators(/*loads=*/false);
}

void MatrixTile::emit_stores() {
  TileStores(b_, spec_, tiling_)
      .store_from_memory(position_, rows_, position_.vectors, first_accumulator_, before_);
}

void MatrixTile::set_tiles() {
  constexpr int kRowBytes = TileMatrixFacts::kRowBytes, kGroupBytes = 4;
  std::vector<kernel::MatrixTile> tiles(static_cast<size_t>(block_.registers()));
  for (int i = 0; i < block_.high; ++i) {
    for (int j = 0; j < block_.wide; ++j)
      tiles[static_cast<size_t>(block_.accumulators(i, j))] = {block_.rows, kRowBytes};
    tiles[static_cast<size_t>(block_.lhs(i))] = {block_.rows, kGroupBytes * block_.groups};
  }
  for (int j = 0; j < block_.wide; ++j)
    tiles[static_cast<size_t>(block_.rhs(j))] = {block_.groups, kRowBytes};
  FIRN_CHECK(b_.kernel().tiles.empty() || b_.kernel().tiles == tiles, "a kernel has tiles of one shape");
  b_.kernel().tiles = std::move(tiles);
}

void MatrixTile::zero_accumulators() {
  for (int i = 0; i < high_; ++i)
    for (int j = 0; j < position_.vectors; ++j) b_.tile_zero(block_.accumulators(i, j));
}

IntExpr MatrixTile::accumulators_place(int i, int j) const {
  int row = block_.first_row(i, rows_) + before_;
  return first_accumulator_ + (row * position_.vectors + j) * tiling_.tile.lanes;
}

void MatrixTile::transfer_accumulators(bool loads) {
  int64_t stride = int64_t{position_.vectors} * tiling_.tile.lanes;
  for (int i = 0; i < high_; ++i)
    for (int j = 0; j < position_.vectors; ++j) {
      int accumulators = block_.accumulators(i, j), memory = spec_.spill_buffer;
      loads ? b_.tile_load(accumulators, memory, accumulators_place(i, j), stride)
            : b_.tile_store(accumulators, memory, accumulators_place(i, j), stride);
    }
}

void MatrixTile::emit_reduction(const IntExpr& k_block, size_t level, std::vector<IntExpr>& k) {
  const plan::ReductionLoop& loop = spec_.shape.k[level];
  FIRN_CHECK(loop.kind != plan::ReductionLoop::Kind::Split ||
                 tile_is_inside(spec_, 0, static_cast<int>(spec_.shape.m)),
             "rows that padding cuts");
  bool clipped = loop.kind == plan::ReductionLoop::Kind::Clipped, is_last = level + 1 == k.size();
  ClippedRange range =
      clipped ? spec_.operands->clipped_range(position_, level) : ClippedRange{0, loop.extent};
  if (tiling_.k_blocks > 1 && level == plan::k_block_level(spec_.shape)) {
    int64_t k_extent = plan::k_block_extent(spec_.shape, tiling_.k_blocks);
    range.first = k_block * k_extent;
    range.end = min(range.first + k_extent, loop.extent);
  }
  if (is_last && !clipped) return emit_steps(range.first, range.end, k);
  b_.loop(range.first, range.end, 1, [&](const IntExpr& iv) {
    k[level] = iv;
    is_last ? emit_products_at(k) : emit_reduction(k_block, level + 1, k);
  });
}

// The innermost loop: over whole blocks and the rest, if the scalar operand lies in blocks.
void MatrixTile::emit_steps(const IntExpr& first, const IntExpr& end, std::vector<IntExpr>& k) {
  const plan::ReductionLoop& loop = spec_.shape.k.back();
  GroupRequests requests(b_, spec_, tiling_, rows_, block_.groups);
  auto run = [&](const IntExpr& base, const IntExpr& from, const IntExpr& to) {
    b_.loop(floor_div(from, block_.groups), floor_div(to, block_.groups), 1, [&](const IntExpr& step) {
      k.back() = base + step * block_.groups;
      requests.emit(position_, k, k.back());
      emit_products_at(k);
    });
  };
  if (loop.block == 0 && interleaved_ && plan::k_block_level(spec_.shape) + 1 == k.size()) {
    // The steps that share the epilogue, equally many rows at each, come before the others.
    MatrixTile* before = interleaved_;
    IntExpr busy = before->rows_ / before->rows_at_a_step() * block_.groups;
    run(0, first, busy);
    interleaved_ = nullptr;
    run(0, busy, end);
    interleaved_ = before;
    return;
  }
  if (loop.block == 0) return run(0, first, end);
  int64_t blocks = loop.extent / loop.block;
  b_.loop(0, blocks, 1, [&](const IntExpr& iv) { run(iv * loop.block, 0, loop.block); });
  run(blocks * loop.block, 0, loop.extent % loop.block);
}

// Operands of the first product are loaded first, and those of every later product behind the products that
// do not need them.
void MatrixTile::emit_products_at(const std::vector<IntExpr>& k) {
  for (int i = 0; i < high_; ++i) {
    MatrixSlice rows = spec_.operands->scalar_rows(position_, block_.first_row(i, rows_), k);
    b_.tile_load(block_.lhs(i), rows.buffer, rows.first, rows.stride);
    for (int j = 0; j < position_.vectors; ++j) {
      if (i == 0) {
        MatrixSlice columns = spec_.operands->vector_rows(position_, j, k);
        b_.tile_load(block_.rhs(j), columns.buffer, columns.first, columns.stride);
      }
      b_.tile_dot(product_, block_.accumulators(i, j), block_.lhs(i), block_.rhs(j));
    }
  }
  if (interleaved_) emit_share_of_stores(k);
}

// Rows per step of an interleaved epilogue: an even part of all rows, with as many vectors as are narrowed
// together.
int MatrixTile::rows_at_a_step() const {
  int rows = 1;
  auto is_enough = [&] {
    return rows_ % rows == 0 && rows * plan::tile_k(spec_.shape) >= rows_ &&
           rows * position_.vectors >= tiling_.epilogue_unroll;
  };
  while (rows < rows_ && !is_enough()) ++rows;
  return rows;
}

void MatrixTile::emit_share_of_stores(const std::vector<IntExpr>& k) {
  MatrixTile& tile = *interleaved_;
  int share = tile.rows_at_a_step();
  IntExpr first = iteration_at(spec_.shape, k, k.back(), block_.groups) * share;
  if (first.upper_bound() >= tile.rows_) first = min(first, tile.rows_);
  TileStores(b_, spec_, tiling_)
      .store_rows_from_memory(tile.position_, first, min(first + share, tile.rows_), tile.position_.vectors,
                              tile.first_accumulator_, tile.before_);
}

} // namespace firn::lower
