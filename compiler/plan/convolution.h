// Convolutions as contractions: output channels are columns, one spatial dim makes the rows, the others are
// loops around. The reduction runs over the window, outermost, then over input channels, so that the
// innermost loop is long and its addresses are affine. Padding is not copied but for long windows and tile
// matrices: rows outside the input are left out of tiles at the edges, and windows are clipped in the other
// dims.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/tiling.h"

#include <optional>

namespace firn::plan {

// Copies of an image that tiles read in its place: tile matrices its rows or windows, registers its lines.
enum class FeatureMapCopy : uint8_t {
  None,
  Rows,    // channels side by side, and padding is there
  Windows, // of each result the positions that it reads, one after the other, their channels side by side
  // Channels lie side by side, positions along the tiled dim next to each other, and its padding is there.
  PaddedRows,
};

// The row of a window over FeatureMapCopy::PaddedRows: a loop over runs of taps; a tile takes those runs in
// which one of its rows has an element of the feature map.
struct PaddedRow {
  WindowDim window; // as it is
  int64_t in = 0;   // elements of the image
  int64_t taps = 1; // of a run, steps of one loop with their channels
  // Runs that are summed by themselves before their sum joins that of the runs before; 0: all of them. Errors
  // of one long sum would grow with it.
  int64_t summed = 0;
};

struct ConvolutionGeometry {
  Type input, result; // 1x1 windows: with all spatial dims as one
  Type full_result;   // as it is
  DType filter_dtype = DType::F32;
  std::vector<WindowDim> window; // spatial dims
  std::vector<IntExpr> in, out;  // their extents, which may vary
  IntExpr batch = 1;
  int64_t groups = 1;
  int64_t channels = 1, filters = 1; // per group
  size_t tiled = 0;                  // the spatial dim whose positions are rows
  int64_t filter_size = 1;           // positions of the window
  int in_block = 0;                  // channels of a block of the input; 0: it is plain
  bool flattened = false;            // spatial dims are one
  int64_t pitch = 0; // rows from line to line, where rows are those of all lines; 0: they are not
  std::optional<PaddedRow> padded_row; // of the copy's, with runs of taps as the window's positions
  size_t channel_level = 0;            // of the reduction's loops, that over channels
  std::vector<size_t> window_level;    // and those over the window, by spatial dim
  ContractionShape shape;
  int64_t flops = 0; // at the bounds

  // Nothing if register tiles do not cover the convolution: input dilation, types that have no product,
  // layouts other than plain and blocked channels, depthwise. `result`: as laid out. `by_rows`: the caller
  // has the loop over lines of the image; `whole_rows`: positions are not independent, even of 1x1 windows.
  static std::optional<ConvolutionGeometry> of(const Instruction& convolution, const Type& result,
                                               const MacInstruction& mac, bool by_rows, bool whole_rows);

  // The same over a copy of the input, in which channels are whole k groups and no window is cut. Of Rows,
  // positions of a window along a line are steps of one loop; lines that padding makes little longer are rows
  // of one, with those between them that nobody wants (`pitch`). Of Windows, rows are all positions of the
  // result, and all steps are one loop. Of Lines, only the tiled dim is padded, so that all rows of a tile
  // take the same steps however long its window is. Filters are still packed as of the original.
  ConvolutionGeometry over(FeatureMapCopy copy) const;

  bool reads_outside(size_t dim) const; // of the input, along a spatial dim
  bool clips(size_t dim) const { return dim != tiled && reads_outside(dim); }
  bool splits_rows() const { return reads_outside(tiled); }
  // The rows whose whole window is inside of the input: from the first one up to the end.
  std::pair<IntExpr, IntExpr> rows_inside() const;
  // Of the loops around the tiles, as shape.outer.
  std::vector<IntExpr> outer_extents() const;
  // Of a line of results, where rows are those of all lines.
  int64_t line_length() const { return (out[tiled].value() - 1) % pitch + 1; }
  // Position of a spatial dim but the tiled one among the outer dims.
  size_t outer_position(size_t dim) const { return (groups > 1 ? 2u : 1u) + dim - (dim > tiled ? 1u : 0u); }
  // Whether lanes behind a group's last channel are the next group's.
  bool shares_vectors(int lanes) const { return groups > 1 && filters % lanes != 0; }
  // Tiles of `rows` rows along the tiled dim, and all of an image per vector of channels; 0 if vectors of
  // results are not the vectors that sums are kept in, or those sums no floats, or rows vary.
  int64_t tiles_along(int rows) const { return (shape.m + rows - 1) / rows; }
  int64_t tiles(int rows, int lanes) const;

private:
  ConvolutionGeometry over_packed_rows() const;
  ConvolutionGeometry over_packed_windows() const;
  ConvolutionGeometry over_padded_rows() const;
  int64_t packed_channels() const; // of a position in a copy
  void take_lines_as_one();
};

} // namespace firn::plan
