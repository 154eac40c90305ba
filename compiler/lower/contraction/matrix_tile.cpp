// The reduction nest of a block of tile matrices. Rows that whole tiles leave are computed by one that begins
// earlier; of that one's sums, those alone pass on that nobody else stores.
#include "compiler/lower/contraction/matrix_tile.h"

#include "compiler/lower/contraction/group_requests.h"
#include "compiler/lower/contraction/tile_stores.h"
#include "compiler/plan/tile_matrices.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;

OpKind product_op(const plan::Product& product) {
  if (is_float(product.lhs)) return OpKind::TileDotBF16;
  if (is_signed(product.lhs)) return is_signed(product.rhs) ? OpKind::TileDotS8S8 : OpKind::TileDotS8U8;
  return is_signed(product.rhs) ? OpKind::TileDotU8S8 : OpKind::TileDotU8U8;
}

class MatrixTile {
public:
  MatrixTile(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling)
      : b_(builder), spec_(spec), tiling_(tiling), block_(plan::tile_block(spec.shape, tiling.tile)),
        product_(product_op(spec.shape.product)) {}

  void emit(TilePosition& position, int rows, int vectors) {
    position.vectors = vectors;
    rows_ = rows;
    high_ = block_.tiles_for(rows);
    set_tiles();
    for (int i = 0; i < high_; ++i)
      for (int j = 0; j < vectors; ++j) b_.tile_zero(block_.sums(i, j));
    std::vector<IntExpr> k(spec_.shape.k.size());
    emit_reduction(position, 0, k);
    store(position);
  }

private:
  void set_tiles() {
    constexpr int kRowBytes = TileMatrixFacts::kRowBytes, kGroupBytes = 4;
    std::vector<kernel::MatrixTile> tiles(static_cast<size_t>(block_.registers()));
    for (int i = 0; i < block_.high; ++i) {
      for (int j = 0; j < block_.wide; ++j)
        tiles[static_cast<size_t>(block_.sums(i, j))] = {block_.rows, kRowBytes};
      tiles[static_cast<size_t>(block_.lhs(i))] = {block_.rows, kGroupBytes * block_.groups};
    }
    for (int j = 0; j < block_.wide; ++j)
      tiles[static_cast<size_t>(block_.rhs(j))] = {block_.groups, kRowBytes};
    FIRN_CHECK(b_.kernel().tiles.empty() || b_.kernel().tiles == tiles, "a kernel has tiles of one shape");
    b_.kernel().tiles = std::move(tiles);
  }

  void emit_reduction(const TilePosition& position, size_t level, std::vector<IntExpr>& k) {
    const plan::ReductionLoop& loop = spec_.shape.k[level];
    FIRN_CHECK(loop.kind != plan::ReductionLoop::Kind::Split || !spec_.row_valid, "rows that padding cuts");
    bool clipped = loop.kind == plan::ReductionLoop::Kind::Clipped;
    if (level + 1 == spec_.shape.k.size() && !clipped) return emit_steps(position, k);
    IntExpr lower = clipped ? spec_.clips[level].lower(position) : IntExpr(0),
            upper = clipped ? spec_.clips[level].upper(position) : IntExpr(loop.extent);
    b_.loop(lower, upper, 1, [&](const IntExpr& iv) {
      k[level] = iv;
      if (level + 1 == spec_.shape.k.size())
        emit_products(position, k);
      else
        emit_reduction(position, level + 1, k);
    });
  }

  // The innermost loop, over whole blocks and what they leave if the scalar operand lies in such.
  void emit_steps(const TilePosition& position, std::vector<IntExpr>& k) {
    const plan::ReductionLoop& loop = spec_.shape.k.back();
    int64_t block = loop.block > 0 ? loop.block : loop.extent, blocks = loop.extent / block;
    GroupRequests requests(b_, spec_, tiling_, rows_, block_.groups);
    auto run = [&](const IntExpr& first, int64_t extent) {
      b_.loop(0, extent / block_.groups, 1, [&](const IntExpr& step) {
        k.back() = first + step * block_.groups;
        requests.emit(position, k, k.back());
        emit_products(position, k);
      });
    };
    b_.loop(0, blocks, 1, [&](const IntExpr& iv) { run(iv * block, block); });
    run(blocks * block, loop.extent % block);
  }

  // Operands of the first product first, and every later one's behind those it has no need of.
  void emit_products(const TilePosition& position, const std::vector<IntExpr>& k) {
    for (int i = 0; i < high_; ++i) {
      MatrixPlace rows = spec_.scalar_rows(position, block_.first_row(i, rows_), k);
      b_.tile_load(block_.lhs(i), rows.buffer, rows.first, rows.stride);
      for (int j = 0; j < position.vectors; ++j) {
        if (i == 0) {
          MatrixPlace columns = spec_.vector_rows(position, j, k);
          b_.tile_load(block_.rhs(j), columns.buffer, columns.first, columns.stride);
        }
        b_.tile_dot(product_, block_.sums(i, j), block_.lhs(i), block_.rhs(j));
      }
    }
  }

  void store(const TilePosition& position) {
    TileStores stores(b_, spec_, tiling_);
    int lanes = tiling_.tile.lanes, before = block_.first_row(0, rows_), wide = position.vectors;
    if (before > 0) before = 0;
    for (int i = 0; i < high_; ++i)
      for (int j = 0; j < wide; ++j)
        b_.tile_store(block_.sums(i, j), stores.sums_in_memory(),
                      ((block_.first_row(i, rows_) - before) * wide + j) * lanes, int64_t{wide} * lanes);
    stores.store_from_memory(position, rows_, wide, -before);
  }

  Builder& b_;
  const ContractionSpec& spec_;
  const plan::Tiling& tiling_;
  plan::TileBlock block_;
  OpKind product_;
  int rows_ = 0, high_ = 0; // of the tile at hand, and its tiles
};

} // namespace

void emit_matrix_tile(Builder& builder, const ContractionSpec& spec, const plan::Tiling& tiling,
                      TilePosition position, int rows, int vectors) {
  MatrixTile(builder, spec, tiling).emit(position, rows, vectors);
}

} // namespace firn::lower
