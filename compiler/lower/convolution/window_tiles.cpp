// Tiles of windows over blocked channels: how lines are cut, and the loops around tiles and within windows.
#include "compiler/lower/convolution/window_tiles.h"

#include "compiler/lower/element/pieces.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

// Independent pieces of work that a kernel is cut into for threads.
constexpr int64_t kPieces = 16;

} // namespace

WindowTiles::WindowTiles(const Type& input, const Type& result, std::vector<WindowDim> window, int lanes,
                         const plan::WindowTiling& tiling)
    : input_(input), result_(result), window_(std::move(window)), lanes_(lanes),
      along_(static_cast<size_t>(tiling.along)), straight_(tiling.straight) {
  int64_t extent = out_extent(along_);
  for (int64_t first = 0; first < extent; first += tiling.pixels)
    add_tile(first, static_cast<int>(std::min(tiling.pixels, extent - first)));
}

int64_t WindowTiles::window_size() const {
  int64_t size = 1;
  for (const WindowDim& dim : window_) size *= dim.size;
  return size;
}

int64_t WindowTiles::count() const {
  int64_t count = (out_extent(along_) + pixels() - 1) / pixels();
  for (size_t i = 0; i < window_.size(); ++i)
    if (i != along_) count *= out_extent(i);
  return count;
}

IntExpr WindowTiles::tile_number(const Position& position) const {
  IntExpr number = 0;
  for (size_t i = 0; i < window_.size(); ++i)
    if (i != along_) number = number * out_extent(i) + position.pixel[i + 2];
  int64_t tiles = (out_extent(along_) + pixels() - 1) / pixels();
  return number * tiles + floor_div(position.pixel[along_ + 2], pixels());
}

void WindowTiles::add_tile(int64_t first, int pixels) {
  const WindowDim& w = window_[along_];
  WindowColumns columns;
  for (int p = 0; p < pixels; ++p)
    for (int64_t j = 0; j < w.size; ++j) {
      int64_t at = (first + p) * w.stride + j * w.dilation - w.pad_low;
      if (at >= 0 && at < in_extent(along_)) columns[p * w.stride + j * w.dilation].push_back({p, j});
    }
  if (!segments_.empty() && segments_.back().pixels == pixels && segments_.back().columns == columns)
    ++segments_.back().tiles;
  else
    segments_.push_back({first, 1, pixels, std::move(columns)});
}

// Blocks of channels outermost, so that the lines of a block's image stay near; cut along the first spatial
// dim where blocks alone are too few for threads.
void WindowTiles::emit(Builder& b, const std::function<void(const Position&)>& block,
                       const TileBody& tile) const {
  int64_t blocks = (result_.dim(1) + lanes_ - 1) / lanes_, images = result_.dim(0) * blocks;
  int64_t lines = along_ == 0 ? 1 : out_extent(0);
  int64_t pieces = std::clamp<int64_t>(kPieces / images, 1, lines), chunk = (lines + pieces - 1) / pieces;
  pieces = (lines + chunk - 1) / chunk;
  IntExpr p = b.set_parallel(images * pieces);
  IntExpr image = floor_div(p, pieces), piece = floor_mod(p, pieces);
  Position position = block_position(floor_div(image, blocks), floor_mod(image, blocks));
  block(position);
  emit_lines(b, 0, {0, piece * chunk, min(piece * chunk + chunk, lines)}, position, tile);
}

void WindowTiles::emit_block(Builder& b, const IntExpr& image, const IntExpr& block_number,
                             const IntExpr& first, const IntExpr& count,
                             const std::function<void(const Position&)>& block, const TileBody& tile) const {
  Position position = block_position(image, block_number);
  block(position);
  emit_lines(b, 0, {first, 0, count}, position, tile);
}

WindowTiles::Position WindowTiles::block_position(const IntExpr& image, const IntExpr& block) const {
  Position position;
  position.block = block;
  position.pixel.assign(window_.size() + 2, IntExpr(0));
  position.pixel[0] = image;
  position.pixel[1] = block * lanes_;
  return position;
}

void WindowTiles::emit_lines(Builder& b, size_t dim, const Lines& lines, Position& position,
                             const TileBody& tile) const {
  if (dim == window_.size()) return emit_line(b, position, tile);
  auto next = [&] {
    emit_lines(b, dim + 1, {0, 0, dim + 1 < window_.size() ? out_extent(dim + 1) : 0}, position, tile);
  };
  if (dim == along_) return next();
  b.loop(lines.lower, lines.upper, 1, [&](const IntExpr& iv) {
    position.pixel[dim + 2] = lines.first + iv;
    next();
  });
}

// Whether straight code would hold two tiles.
bool WindowTiles::has_single_neighbours() const {
  for (size_t i = 1; i < segments_.size(); ++i)
    if (segments_[i - 1].tiles == 1 && segments_[i].tiles == 1) return true;
  return false;
}

void WindowTiles::emit_line(Builder& b, Position& position, const TileBody& tile) const {
  auto emit_tiles = [&](bool clipped) {
    auto emit_segment = [&](int i) {
      const Segment& segment = segments_[static_cast<size_t>(i)];
      b.loop(0, segment.tiles, 1, [&](const IntExpr& number) {
        position.pixel[along_ + 2] = number * segment.pixels + segment.first;
        tile(segment, position, clipped);
      });
    };
    int count = static_cast<int>(segments_.size());
    if (!clipped && has_single_neighbours()) return emit_pieces(b, count, emit_segment);
    for (int i = 0; i < count; ++i) emit_segment(i);
  };
  Register inside;
  bool never = false;
  auto require = [&](kernel::Predicate predicate, const IntExpr& at, int64_t bound) {
    Register holds = b.compare(kernel::OpKind::SCmp, predicate, b.index(at), b.index(bound));
    inside = inside ? b.binary(kernel::OpKind::And, inside, holds) : holds;
  };
  for (size_t i = 0; i < window_.size() && straight_; ++i) {
    if (i == along_) continue;
    const WindowDim& w = window_[i];
    int64_t low = std::max<int64_t>((w.pad_low + w.stride - 1) / w.stride, 0);
    int64_t room = in_extent(i) + w.pad_low - w.dilated_size();
    int64_t high = room < 0 ? 0 : std::min(room / w.stride + 1, out_extent(i));
    never |= low >= high;
    if (never) break;
    if (low > 0) require(kernel::Predicate::Ge, position.pixel[i + 2], low);
    if (high < out_extent(i)) require(kernel::Predicate::Lt, position.pixel[i + 2], high);
  }
  if (!straight_ || never) return emit_tiles(/*clipped=*/true);
  if (!inside) return emit_tiles(/*clipped=*/false);
  b.if_then_else(
      inside, [&] { return emit_tiles(false), Registers{}; }, [&] { return emit_tiles(true), Registers{}; });
}

WindowTiles::Registers WindowTiles::over_window(Builder& b, const Position& position, bool clipped,
                                                Registers values, const Line& line) const {
  std::vector<IntExpr> k(window_.size(), IntExpr(0));
  std::function<Registers(size_t, Registers)> nest = [&](size_t dim, Registers carried) -> Registers {
    if (dim == window_.size()) return line(k, carried);
    if (dim == along_) return nest(dim + 1, std::move(carried));
    const WindowDim& w = window_[dim];
    if (!clipped) {
      for (int64_t i = 0; i < w.size; ++i) {
        k[dim] = i;
        carried = nest(dim + 1, std::move(carried));
      }
      return carried;
    }
    IntExpr start = position.pixel[dim + 2] * w.stride - w.pad_low;
    IntExpr lower = max(0, ceil_div(start * -1, w.dilation));
    IntExpr upper = min(w.size, floor_div(IntExpr(in_extent(dim) - 1) - start, w.dilation) + 1);
    return b.loop_carried(lower, upper, 1, std::move(carried),
                          [&](const IntExpr& iv, const Registers& inner) {
                            k[dim] = iv;
                            return nest(dim + 1, inner);
                          });
  };
  return nest(0, std::move(values));
}

WindowTiles::Index WindowTiles::input_index(const Position& position, const std::vector<IntExpr>& k,
                                            int64_t column) const {
  Index index{position.pixel[0], position.pixel[1]};
  for (size_t i = 0; i < window_.size(); ++i) {
    const WindowDim& w = window_[i];
    IntExpr offset = i == along_ ? IntExpr(column) : k[i] * w.dilation;
    index.push_back(position.pixel[i + 2] * w.stride + offset - w.pad_low);
  }
  return index;
}

} // namespace firn::lower
