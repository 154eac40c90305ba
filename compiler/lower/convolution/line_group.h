// Neighbouring lines of a window whose bytes one product multiplies: the input of a depthwise convolution of
// bytes.
#pragma once

#include "compiler/lower/convolution/window_tiles.h"

namespace firn::lower {

// Lines `number` * 4 + [0, 4) of the windows of a tile, as far as the windows reach. Windows have two dims.
class RowGroup {
public:
  static constexpr int kLines = 4;
  // `clipped`: lines may lie outside the input. Tiles and position must outlive the group.
  RowGroup(kernel::Builder& builder, const WindowTiles& tiles, const WindowTiles::Position& position,
           int64_t number, bool clipped);

  // The bytes of a column of the tile: 4 for each lane, a channel's bytes side by side, one from each line;
  // zeros for missing lines. `load` takes an index of the input.
  using Load = std::function<kernel::Register(const WindowTiles::Index& index)>;
  kernel::Register bytes_of(kernel::Builder& builder, int64_t column, const Load& load) const;

private:
  struct Line {
    IntExpr at;                                  // line of the input, clamped to it
    std::optional<kernel::Register> is_inside{}; // mask of lanes that are inside; none: the line always is
  };
  const WindowTiles& tiles_;
  const WindowTiles::Position& position_;
  std::vector<Line> map_rows_;
};

} // namespace firn::lower
