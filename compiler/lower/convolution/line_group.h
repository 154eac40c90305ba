// Neighbouring lines of a window whose bytes one product multiplies: what a depthwise convolution of bytes
// reads of its input.
#pragma once

#include "compiler/lower/convolution/window_tiles.h"

namespace firn::lower {

// Lines `number` * 4 + [0, 4) of the windows of a tile, as far as these have them. Windows have two dims.
class RowGroup {
public:
  static constexpr int kLines = 4;
  // `clipped`: lines may lie outside the input. Tiles and position outlive the group.
  RowGroup(kernel::Builder& builder, const WindowTiles& tiles, const WindowTiles::Position& position,
           int64_t number, bool clipped);

  // The bytes of a column of the tile, those of a channel side by side, one from each line: 4 for each lane;
  // zeros for lines that are not there. `load` takes an index of the input.
  using Load = std::function<kernel::Register(const WindowTiles::Index& index)>;
  kernel::Register bytes_of(kernel::Builder& builder, int64_t column, const Load& load) const;

private:
  struct Line {
    IntExpr at;                                  // of the input, inside it
    std::optional<kernel::Register> is_inside{}; // lanes of it; none: it always is
  };
  const WindowTiles& tiles_;
  const WindowTiles::Position& position_;
  std::vector<Line> map_rows_;
};

} // namespace firn::lower
