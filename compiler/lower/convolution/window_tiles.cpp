// Tiles of windows over blocked channels: how lines are cut, and the loops around tiles and within windows.
#include "compiler/lower/convolution/window_tiles.h"

#include "compiler/lower/element/pieces.h"
#include "compiler/plan/windows/plan.h"

#include <algorithm>

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::Register;

} // namespace

WindowTiles::WindowTiles(const Type& input, const Type& result, std::vector<WindowDim> window, int lanes,
                         const plan::WindowTiling& tiling)
    : input_(input), result_(result), window_(std::move(window)), lanes_(lanes),
      along_(static_cast<size_t>(tiling.along)), unrolled_(tiling.unrolled), rolled_(tiling.rolled),
      items_(tiling.items) {
  bool varies = !in_extent(along_).is_constant() || !out_extent(along_).is_constant();
  if (rolled_)
    add_rolled_tiles(static_cast<int>(tiling.pixels));
  else if (varies)
    add_varying_tiles(static_cast<int>(tiling.pixels));
  else
    for (int64_t first = 0, end = out_extent(along_).value(); first < end; first += tiling.pixels)
      add_tile(first, static_cast<int>(std::min(tiling.pixels, end - first)));
}

int64_t WindowTiles::window_size() const {
  int64_t size = 1;
  for (const WindowDim& dim : window_) size *= dim.size;
  return size;
}

int64_t WindowTiles::count() const {
  int64_t count = (out_extent(along_).value() + pixels() - 1) / pixels();
  for (size_t i = 0; i < window_.size(); ++i)
    if (i != along_) count *= out_extent(i).value();
  return count;
}

IntExpr WindowTiles::tile_number(const Position& position) const {
  IntExpr number = 0;
  for (size_t i = 0; i < window_.size(); ++i)
    if (i != along_) number = number * out_extent(i) + position.pixel[i + 2];
  return number * ceil_div(out_extent(along_), pixels()) + floor_div(position.pixel[along_ + 2], pixels());
}

WindowTiles::Inside WindowTiles::inside(size_t i) const {
  const WindowDim& w = window_[i];
  IntExpr first = min(max(ceil_div(w.pad_low, w.stride), 0), out_extent(i));
  IntExpr room = in_extent(i) + w.pad_low - w.dilated_size();
  return {first, max(first, min(floor_div(room, w.stride) + 1, out_extent(i)))};
}

WindowColumns WindowTiles::columns_of(int pixels, const std::function<bool(int64_t column)>& exists) const {
  const WindowDim& w = window_[along_];
  WindowColumns columns;
  if (rolled_) return columns;
  for (int p = 0; p < pixels; ++p)
    for (int64_t j = 0; j < w.size; ++j)
      if (int64_t column = p * w.stride + j * w.dilation; exists(column)) columns[column].push_back({p, j});
  return columns;
}

void WindowTiles::add_tile(int64_t first, int pixels) {
  const WindowDim& w = window_[along_];
  WindowColumns columns = columns_of(pixels, [&](int64_t column) {
    int64_t at = first * w.stride + column - w.pad_low;
    return at >= 0 && at < in_extent(along_).value();
  });
  if (!segments_.empty() && segments_.back().pixels == pixels && segments_.back().columns == columns)
    segments_.back().tiles = segments_.back().tiles + 1;
  else
    segments_.push_back({first, 1, pixels, std::move(columns)});
}

void WindowTiles::add_varying_tiles(int pixels) {
  Inside within = inside(along_);
  add_ladder(within.end, within.end - within.first, pixels);
  WindowColumns columns = columns_of(1, [](int64_t) { return true; });
  edges_ = Segment{within.first, within.first + out_extent(along_) - within.end, 1, std::move(columns), true};
}

// Adds whole tiles for the last `count` pixels before `end`, and shorter ones for the rest.
void WindowTiles::add_ladder(const IntExpr& end, IntExpr count, int pixels) {
  auto columns = [&](int count) { return columns_of(count, [](int64_t) { return true; }); };
  segments_.push_back({end - count, floor_div(count, pixels), pixels, columns(pixels)});
  for (int whole = pixels, rest = pixels / 2; rest > 0; whole = rest, rest /= 2) {
    count = floor_mod(count, whole);
    segments_.push_back({end - count, floor_div(count, rest), rest, columns(rest)});
  }
}

void WindowTiles::add_rolled_tiles(int pixels) {
  const IntExpr& extent = out_extent(along_);
  if (!extent.is_constant()) return add_ladder(extent, extent, pixels);
  int64_t tiles = extent.value() / pixels, rest = extent.value() % pixels;
  segments_.push_back({0, tiles, pixels, {}});
  if (rest > 0) segments_.push_back({tiles * pixels, 1, static_cast<int>(rest), {}});
}

// Blocks of channels are outermost, so that the lines of a block's image stay near. The first spatial dim is
// cut if blocks alone are too few for threads.
void WindowTiles::emit(Builder& b, const std::function<void(const Position&)>& block,
                       const TileBody& tile) const {
  int64_t blocks = (result_.dim(1) + lanes_ - 1) / lanes_;
  IntExpr maps = result_.dims[0].extent * blocks, map_rows = along_ == 0 ? IntExpr(1) : out_extent(0);
  IntExpr pieces = min(max(floor_div(items_, at_least_one(maps)), 1), at_least_one(map_rows)),
          chunk = ceil_div(map_rows, pieces);
  pieces = ceil_div(map_rows, at_least_one(chunk));
  IntExpr p = b.set_parallel(maps * pieces);
  IntExpr feature_map = floor_div(p, at_least_one(pieces)), piece = floor_mod(p, at_least_one(pieces));
  Position position = block_position(floor_div(feature_map, blocks), floor_mod(feature_map, blocks));
  block(position);
  emit_rows(b, 0, {0, piece * chunk, min(piece * chunk + chunk, map_rows)}, position, tile);
}

void WindowTiles::emit_block(Builder& b, const IntExpr& feature_map, const IntExpr& block_number,
                             const IntExpr& first, const IntExpr& count,
                             const std::function<void(const Position&)>& block, const TileBody& tile) const {
  Position position = block_position(feature_map, block_number);
  block(position);
  emit_rows(b, 0, {first, 0, count}, position, tile);
}

WindowTiles::Position WindowTiles::block_position(const IntExpr& feature_map, const IntExpr& block) const {
  Position position;
  position.block = block;
  position.pixel.assign(window_.size() + 2, IntExpr(0));
  position.pixel[0] = feature_map;
  position.pixel[1] = block * lanes_;
  return position;
}

void WindowTiles::emit_rows(Builder& b, size_t dim, const PaddedRows& map_rows, Position& position,
                            const TileBody& tile) const {
  if (dim == window_.size()) return emit_row(b, position, tile);
  auto next = [&] {
    emit_rows(b, dim + 1, {0, 0, dim + 1 < window_.size() ? out_extent(dim + 1) : IntExpr(0)}, position,
              tile);
  };
  if (dim == along_) return next();
  b.loop(map_rows.lower, map_rows.upper, 1, [&](const IntExpr& iv) {
    position.pixel[dim + 2] = map_rows.first + iv;
    next();
  });
}

// Whether straight code would hold two tiles.
bool WindowTiles::has_single_neighbours() const {
  for (size_t i = 1; i < segments_.size(); ++i)
    if (segments_[i - 1].tiles == IntExpr(1) && segments_[i].tiles == IntExpr(1)) return true;
  return false;
}

void WindowTiles::emit_segment(Builder& b, const Segment& segment, Position& position, bool clipped,
                               const TileBody& tile) const {
  b.loop(0, segment.tiles, 1, [&](const IntExpr& number) {
    IntExpr& pixel = position.pixel[along_ + 2];
    pixel = number * segment.pixels + segment.first;
    // Edge pixels before the first whose window is inside come first, then those behind the last.
    if (segment.at_edge)
      pixel = number + min(max(number - segment.first + 1, 0), 1) * (inside(along_).end - segment.first);
    tile(segment, position, clipped);
  });
}

bool WindowTiles::is_never_inside() const {
  for (size_t i = 0; i < window_.size(); ++i)
    if (Inside range = inside(i); i != along_ && (range.end - range.first).upper_bound() <= 0) return true;
  return false;
}

std::optional<Register> WindowTiles::emit_inside(Builder& b, const Position& position) const {
  std::optional<Register> all;
  auto require = [&](kernel::Predicate predicate, const IntExpr& at, const IntExpr& bound) {
    Register holds = b.compare(kernel::OpKind::SCmp, predicate, b.index(at), b.index(bound));
    all = all ? b.binary(kernel::OpKind::And, *all, holds) : holds;
  };
  for (size_t i = 0; i < window_.size(); ++i) {
    if (i == along_) continue;
    Inside range = inside(i);
    if (range.first.upper_bound() > 0) require(kernel::Predicate::Ge, position.pixel[i + 2], range.first);
    if (range.end != out_extent(i)) require(kernel::Predicate::Lt, position.pixel[i + 2], range.end);
  }
  return all;
}

void WindowTiles::emit_row(Builder& b, Position& position, const TileBody& tile) const {
  auto emit_tiles = [&](bool clipped) {
    auto emit = [&](int i) { emit_segment(b, segments_[static_cast<size_t>(i)], position, clipped, tile); };
    int count = static_cast<int>(segments_.size());
    if (!clipped && has_single_neighbours()) return emit_pieces(b, count, emit);
    for (int i = 0; i < count; ++i) emit(i);
  };
  bool is_clipped = !unrolled_ || is_never_inside();
  if (std::optional<Register> is_inside = is_clipped ? std::nullopt : emit_inside(b, position))
    b.if_then_else(
        *is_inside, [&] { return emit_tiles(false), Registers{}; },
        [&] { return emit_tiles(true), Registers{}; });
  else
    emit_tiles(is_clipped);
  if (edges_) emit_segment(b, *edges_, position, /*clipped=*/true, tile);
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
    Taps taps = taps_inside(dim, position.pixel[dim + 2]);
    return b.loop_carried(taps.lower, taps.upper, 1, std::move(carried),
                          [&](const IntExpr& iv, const Registers& inner) {
                            k[dim] = iv;
                            return nest(dim + 1, inner);
                          });
  };
  return nest(0, std::move(values));
}

WindowTiles::Taps WindowTiles::taps_inside(size_t i, const IntExpr& position) const {
  const WindowDim& w = window_[i];
  IntExpr start = position * w.stride - w.pad_low;
  return {max(0, ceil_div(start * -1, w.dilation)),
          min(w.size, floor_div(in_extent(i) - 1 - start, w.dilation) + 1)};
}

// Taps that are inside begin and end no later for later pixels: the taps common to all pixels begin where the
// first pixel's do, and end where the last one's do.
WindowTiles::Registers WindowTiles::over_taps(Builder& b, const Segment& segment, const Position& position,
                                              Registers values, const Tap& body) const {
  auto inside_of = [&](int pixel) { return taps_inside(along_, position.pixel[along_ + 2] + pixel); };
  IntExpr first = inside_of(0).lower, end = max(first, inside_of(segment.pixels - 1).upper);
  auto of_pixel = [&](int pixel, const IntExpr& lower, const IntExpr& upper) {
    kernel::Register& value = values[static_cast<size_t>(pixel)];
    value = b.loop_carried(lower, upper, 1, {value}, [&](const IntExpr& tap, const Registers& carried) {
      return body(tap, pixel, carried);
    })[0];
  };
  for (int pixel = 1; pixel < segment.pixels; ++pixel) {
    Taps taps = inside_of(pixel);
    of_pixel(pixel, taps.lower, min(first, taps.upper));
  }
  values =
      b.loop_carried(first, end, 1, std::move(values),
                     [&](const IntExpr& tap, const Registers& carried) { return body(tap, 0, carried); });
  for (int pixel = 0; pixel + 1 < segment.pixels; ++pixel) of_pixel(pixel, end, inside_of(pixel).upper);
  return values;
}

WindowTiles::Registers WindowTiles::at_column(Builder& b, const Segment& segment, const Position& position,
                                              int64_t column, Registers values,
                                              const std::function<Registers(Registers values)>& body) const {
  if (!segment.at_edge) return body(std::move(values));
  const WindowDim& w = window_[along_];
  IntExpr at = position.pixel[along_ + 2] * w.stride + column - w.pad_low;
  if (at.upper_bound() < 0 || at.lower_bound() >= in_extent(along_).upper_bound()) return values;
  // Below 0, an unsigned index is beyond any extent.
  Register is_inside =
      b.compare(kernel::OpKind::UCmp, kernel::Predicate::Lt, b.index(at), b.index(in_extent(along_)));
  return b.if_then_else(
      is_inside, [&] { return body(values); }, [&] { return values; });
}

WindowTiles::Index WindowTiles::input_index(const Position& position, const std::vector<IntExpr>& k,
                                            const IntExpr& column) const {
  Index index{position.pixel[0], position.pixel[1]};
  for (size_t i = 0; i < window_.size(); ++i) {
    const WindowDim& w = window_[i];
    IntExpr offset = i == along_ ? column : k[i] * w.dilation;
    index.push_back(position.pixel[i + 2] * w.stride + offset - w.pad_low);
  }
  return index;
}

} // namespace firn::lower
