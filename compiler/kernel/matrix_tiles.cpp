// Registers of matrices: the ops on them, made and verified.
#include "compiler/kernel/matrix_tiles.h"

#include "compiler/kernel/builder.h"

namespace firn::kernel {

void Builder::tile_zero(int tile) {
  append(OpKind::TileZero).integers = {tile};
}

void Builder::tile_load(int tile, int buffer, const IntExpr& index, int64_t stride) {
  emit_memory(OpKind::TileLoad, {}, buffer, index).integers = {tile, stride};
}

void Builder::tile_store(int tile, int buffer, const IntExpr& index, int64_t stride) {
  emit_memory(OpKind::TileStore, {}, buffer, index).integers = {tile, stride};
}

void Builder::tile_dot(OpKind kind, int sums, int lhs, int rhs) {
  append(kind).integers = {sums, lhs, rhs};
}

namespace {

// Intel's AMX has 8 registers of 16 rows of 64 bytes, and adds products in words of 4.
constexpr size_t kMaxTiles = 8;
constexpr int kMaxRows = 16, kMaxRowBytes = 64, kWordBytes = 4;
// Elements from row to row; addresses are far from overflowing.
constexpr int64_t kMaxStride = int64_t{1} << 40;

const MatrixTile& tile_of(const Kernel& kernel, const Op& op, size_t position) {
  return kernel.tiles[static_cast<size_t>(op.integers[position])];
}

// Each check says what is wrong, to stand behind the name of the op or the kernel; empty: nothing is.
std::string check_transfer(const Kernel& kernel, const Op& op) {
  const BufferParameter& buffer = kernel.buffer(op.buffer);
  int64_t stride = op.integers[1];
  if (stride < 0 || stride > kMaxStride) return "rows lie " + std::to_string(stride) + " elements apart";
  if (tile_of(kernel, op, 0).row_bytes % scalar_bytes(buffer.element) != 0)
    return "rows are no whole elements of buffer '" + buffer.name + "'";
  if (op.kind == OpKind::TileStore && !buffer.written)
    return "writes buffer '" + buffer.name + "', which is not marked written";
  if (op.index.upper_bound() < 0 || op.index.lower_bound() > buffer.size - tile_extent(kernel, op))
    return "accesses " + std::to_string(tile_extent(kernel, op)) + " elements at " + op.index.to_string() +
           " of buffer '" + buffer.name + "', which has " + std::to_string(buffer.size);
  return "";
}

std::string check_dot(const Kernel& kernel, const Op& op) {
  const MatrixTile &sums = tile_of(kernel, op, 0), &lhs = tile_of(kernel, op, 1),
                   &rhs = tile_of(kernel, op, 2);
  if (op.integers[0] == op.integers[1] || op.integers[0] == op.integers[2] ||
      op.integers[1] == op.integers[2])
    return "multiplies and adds three tiles";
  bool fits =
      sums.rows == lhs.rows && sums.row_bytes == rhs.row_bytes && lhs.row_bytes == kWordBytes * rhs.rows;
  return fits ? "" : "multiplies tiles that do not fit each other";
}

} // namespace

std::string check_tiles(const Kernel& kernel) {
  if (kernel.tiles.size() > kMaxTiles) return "has " + std::to_string(kernel.tiles.size()) + " tiles";
  for (const MatrixTile& tile : kernel.tiles)
    if (tile.rows < 1 || tile.rows > kMaxRows || tile.row_bytes < kWordBytes ||
        tile.row_bytes > kMaxRowBytes || tile.row_bytes % kWordBytes != 0)
      return "has a tile of " + std::to_string(tile.rows) + " rows of " + std::to_string(tile.row_bytes) +
             " bytes";
  return "";
}

std::string check_tile_op(const Kernel& kernel, const Op& op) {
  bool transfers = op.kind == OpKind::TileLoad || op.kind == OpKind::TileStore;
  size_t numbers = op.kind == OpKind::TileZero ? 1 : transfers ? 2 : 3;
  if (op.integers.size() != numbers || !op.results.empty())
    return "wants " + std::to_string(numbers) + " numbers and has no result";
  for (size_t i = 0; i < (transfers ? 1 : numbers); ++i)
    if (op.integers[i] < 0 || static_cast<size_t>(op.integers[i]) >= kernel.tiles.size())
      return "names a tile that the kernel does not have";
  if (op.kind == OpKind::TileZero) return "";
  return transfers ? check_transfer(kernel, op) : check_dot(kernel, op);
}

int64_t tile_extent(const Kernel& kernel, const Op& op) {
  const MatrixTile& tile = tile_of(kernel, op, 0);
  return (tile.rows - 1) * op.integers[1] + tile.row_bytes / scalar_bytes(kernel.buffer(op.buffer).element);
}

} // namespace firn::kernel
