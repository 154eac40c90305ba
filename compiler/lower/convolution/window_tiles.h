// The walk over a tensor of blocked channels that depthwise convolutions and pooling share. A tile is a run
// of output pixels along one spatial dim (`along`), one vector of channels each. Tiles whose taps fall partly
// outside the input are told apart from others at compile time; in the other dims, lines of the window
// outside the input are left out by the bounds of loops, and straight code serves positions where the whole
// window is inside. Where the extent of `along` varies, whole tiles cover the pixels whose window is inside,
// shorter ones what these leave, and pixels at either edge are tiles of their own, which look where they are.
// A long window along `along` is a loop: over the taps that all pixels of a tile have inside, and for each
// pixel over those before and behind that it has besides, so that all tiles of a line have one code.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lowering_context.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/windows/plan.h"

#include <map>
#include <optional>

namespace firn::lower {

// A tap of one pixel of a tile.
struct WindowUse {
  int pixel;
  int64_t tap; // along `along`
  bool operator==(const WindowUse&) const = default;
};
// The taps that read each input column, counted from the start of the first pixel's window. A column is
// loaded once.
using WindowColumns = std::map<int64_t, std::vector<WindowUse>>;

class WindowTiles {
public:
  using Index = std::vector<IntExpr>;
  using Registers = std::vector<kernel::Register>;
  // Tiles in a row that have the same taps.
  struct Segment {
    IntExpr first = 0, tiles = 0;
    int pixels = 0;
    WindowColumns columns;
    bool at_edge = false; // columns may lie outside
  };
  // The position of a tile: batch, first channel, first pixel's spatial position, and the number of the
  // channel block.
  struct Position {
    Index pixel;
    IntExpr block;
  };
  using TileBody = std::function<void(const Segment& segment, const Position& position, bool clipped)>;

  // `window`: of the spatial dims. Both tensors are plain except for one block of `lanes` channels.
  WindowTiles(const Type& input, const Type& result, std::vector<WindowDim> window, int lanes,
              const plan::WindowTiling& tiling);

  int pixels() const { return segments_[0].pixels; }
  size_t along() const { return along_; }
  size_t across() const { return 1 - along_; } // the other one of two spatial dims
  bool is_rolled() const { return rolled_; }
  int lanes() const { return lanes_; }
  const Type& input() const { return input_; }
  const std::vector<WindowDim>& window() const { return window_; }
  int64_t window_size() const;
  // The number of tiles in one block of channels of one image, and the number of a tile among them, if
  // extents do not vary.
  int64_t count() const;
  IntExpr tile_number(const Position& position) const;

  // Sets the kernel's parallel loop over blocks of channels and emits `tile` for all tiles; `block` runs once
  // per block.
  void emit(kernel::Builder& builder, const std::function<void(const Position&)>& block,
            const TileBody& tile) const;

  // Emits tiles without the parallel loop: `feature_map` and `block_number` are given, and only the lines
  // `first` + [0, count) of the first spatial dim, which is not `along`.
  void emit_block(kernel::Builder& builder, const IntExpr& feature_map, const IntExpr& block_number,
                  const IntExpr& first, const IntExpr& count,
                  const std::function<void(const Position&)>& block, const TileBody& tile) const;

  // Runs `line` for the lines of the window along `along`: k has the window's position in the other dims.
  // Lines are straight code, or with `clipped` a loop over those inside the input, which carries `values`.
  using Line = std::function<Registers(std::vector<IntExpr>& k, const Registers& values)>;
  Registers over_window(kernel::Builder& builder, const Position& position, bool clipped, Registers values,
                        const Line& line) const;
  // Runs `body` for a column of the tile, which updates `values`, unless the column lies outside.
  Registers at_column(kernel::Builder& builder, const Segment& segment, const Position& position,
                      int64_t column, Registers values,
                      const std::function<Registers(Registers values)>& body) const;
  // Runs `body` for the taps along `along` if the window is a loop: for pixels [first, first + values.size())
  // of the tile, whose values it updates.
  using Tap = std::function<Registers(const IntExpr& tap, int first, const Registers& values)>;
  Registers over_taps(kernel::Builder& builder, const Segment& segment, const Position& position,
                      Registers values, const Tap& body) const;
  // The column that a pixel of the tile reads at a tap along `along`.
  IntExpr column_of(int pixel, const IntExpr& tap) const {
    return tap * window_[along_].dilation + pixel * window_[along_].stride;
  }
  // The input's index for a column of the tile, at position k of the window in the other dims.
  Index input_index(const Position& position, const std::vector<IntExpr>& k, const IntExpr& column) const;

private:
  const IntExpr& in_extent(size_t i) const { return input_.dims[i + 2].extent; }
  const IntExpr& out_extent(size_t i) const { return result_.dims[i + 2].extent; }
  // Positions whose whole window is inside in this dim.
  struct Inside {
    IntExpr first, end;
  };
  Inside inside(size_t i) const;
  // Taps in dim i that are inside for that position of the result.
  struct Taps {
    IntExpr lower, upper;
  };
  Taps taps_inside(size_t i, const IntExpr& position) const;
  WindowColumns columns_of(int pixels, const std::function<bool(int64_t column)>& exists) const;
  void add_tile(int64_t first, int pixels);
  void add_varying_tiles(int pixels);
  void add_rolled_tiles(int pixels);
  void add_ladder(const IntExpr& end, IntExpr count, int pixels);
  struct PaddedRows {
    IntExpr first, lower, upper; // first + [lower, upper)
  };
  void emit_rows(kernel::Builder& b, size_t dim, const PaddedRows& map_rows, Position& position,
                 const TileBody& tile) const;
  Position block_position(const IntExpr& feature_map, const IntExpr& block) const;
  bool has_single_neighbours() const;
  void emit_segment(kernel::Builder& b, const Segment& segment, Position& position, bool clipped,
                    const TileBody& tile) const;
  // The condition that the whole window is inside in all dims but `along`; none: it always is.
  std::optional<kernel::Register> emit_inside(kernel::Builder& b, const Position& position) const;
  bool is_never_inside() const;
  void emit_row(kernel::Builder& b, Position& position, const TileBody& tile) const;

  Type input_, result_;
  std::vector<WindowDim> window_;
  int lanes_ = 1;
  size_t along_ = 0;
  bool unrolled_ = false;
  bool rolled_ = false;           // the window along `along` is a loop; tiles name no columns
  int64_t items_;                 // items for threads
  std::vector<Segment> segments_; // the first has as many pixels as any
  std::optional<Segment> edges_;  // pixels at both edges, counted through, where `along` varies
};

} // namespace firn::lower
