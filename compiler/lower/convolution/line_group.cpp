// Bytes of four lines, brought together by shuffles.
#include "compiler/lower/convolution/line_group.h"

#include <algorithm>
#include <numeric>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

Register side_by_side(Builder& b, Register lhs, Register rhs) {
  std::vector<int64_t> order(2 * static_cast<size_t>(b.type(lhs).lanes));
  std::iota(order.begin(), order.end(), 0);
  return b.shuffle(lhs, rhs, std::move(order));
}

} // namespace

RowGroup::RowGroup(Builder& b, const WindowTiles& tiles, const WindowTiles::Position& position,
                   int64_t number, bool clipped)
    : tiles_(tiles), position_(position) {
  const WindowDim& window = tiles.window()[tiles.across()];
  const IntExpr& extent = tiles.input().dims[tiles.across() + 2].extent;
  for (int64_t i = kLines * number; i < std::min(window.size, kLines * (number + 1)); ++i) {
    IntExpr at = position.pixel[tiles.across() + 2] * window.stride + i * window.dilation - window.pad_low;
    if (!clipped) {
      map_rows_.push_back({at});
      continue;
    }
    // Compared as unsigned numbers, rows below 0 are beyond any extent.
    Register inside = b.compare(kernel::OpKind::UCmp, kernel::Predicate::Lt, b.index(at), b.index(extent));
    map_rows_.push_back({min(max(at, 0), extent - 1), b.splat(inside, tiles.lanes())});
  }
}

// Joins the lines to one vector before it shuffles them: many CPUs permute the bytes of a register by one
// instruction.
Register RowGroup::bytes_of(Builder& b, int64_t column, const Load& load) const {
  int lanes = tiles_.lanes();
  Register zeros = b.constant_int({kernel::Scalar::I8, lanes}, 0);
  std::vector<Register> bytes(kLines, zeros);
  for (size_t i = 0; i < map_rows_.size(); ++i) {
    std::vector<IntExpr> k(2, IntExpr(0));
    WindowTiles::Index index = tiles_.input_index(position_, k, column);
    index[tiles_.across() + 2] = map_rows_[i].at;
    bytes[i] = load(index);
    if (map_rows_[i].is_inside) bytes[i] = b.select(*map_rows_[i].is_inside, bytes[i], zeros);
  }
  Register all = side_by_side(b, side_by_side(b, bytes[0], bytes[1]), side_by_side(b, bytes[2], bytes[3]));
  std::vector<int64_t> order;
  for (int64_t lane = 0; lane < lanes; ++lane)
    for (int64_t line = 0; line < kLines; ++line) order.push_back(line * lanes + lane);
  return b.shuffle(all, all, std::move(order));
}

} // namespace firn::lower
