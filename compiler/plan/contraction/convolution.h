// Convolutions as contractions: output channels are columns, one spatial dim makes the rows, the others are
// loops around. The reduction runs over the window, outermost, then over input channels, so that the
// innermost loop is long and its addresses are affine. Padding is not copied but for long windows and tile
// matrices: rows outside the input are left out of tiles at the edges, and windows are clipped in the other
// dims.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/contraction/tiling.h"

#include <optional>

namespace firn::plan {

// Copies of an image that tiles read in its place: tile matrices read its rows or windows, register tiles its
// padded rows.
enum class FeatureMapCopy : uint8_t {
  None,
  Rows, // channels lie side by side, and padding is part of the copy
  // Every result has the positions that it reads one after the other, their channels side by side.
  Windows,
  // Channels lie side by side, positions along the tiled dim next to each other, and its padding is there.
  PaddedRows,
};

// The row of a window over FeatureMapCopy::PaddedRows: a loop over runs of taps. A tile takes the runs in
// which at least one of its rows has an element of the feature map.
struct PaddedRow {
  WindowDim window; // the original window
  int64_t in = 0;   // elements of the image
  int64_t taps = 1; // taps of a run, whose steps and channels are one loop
  // Runs that are summed by themselves before their sum is added to that of earlier runs; 0: all of them.
  // Errors of one long sum would grow with its length.
  int64_t summed = 0;
};

struct ConvolutionGeometry {
  Type input, result; // types with all spatial dims as one, if windows are 1x1
  Type full_result;   // type with its own dims
  DType filter_dtype = DType::F32;
  std::vector<WindowDim> window; // spatial dims
  std::vector<IntExpr> in, out;  // their extents, which may vary
  IntExpr batch = 1;
  int64_t groups = 1;
  int64_t channels = 1, filters = 1; // per group
  size_t tiled = 0;                  // the spatial dim whose positions are rows
  int64_t filter_size = 1;           // positions of the window
  int in_block = 0;                  // channels of a block of the input; 0: it is plain
  bool flattened = false;            // all spatial dims are one
  // Rows from line to line, if the rows of all lines are counted together; 0: they are not.
  int64_t pitch = 0;
  // Set for a copy with padded rows, whose window positions are runs of taps.
  std::optional<PaddedRow> padded_row;
  size_t channel_level = 0;         // number of the reduction loop over channels
  std::vector<size_t> window_level; // and of those over the window, by spatial dim
  ContractionShape shape;
  int64_t flops = 0; // at the bounds

  // Nothing if register tiles do not cover the convolution: input dilation, types that have no product,
  // layouts other than plain and blocked channels, depthwise. `result`: its type as laid out. `by_rows`: the
  // caller has the loop over lines of the image. `whole_rows`: positions are not independent, even of 1x1
  // windows.
  static std::optional<ConvolutionGeometry> of(const Instruction& convolution, const Type& result,
                                               const MacInstruction& mac, bool by_rows, bool whole_rows);

  // This convolution over a copy of the input, in which channels are whole k groups and no window is cut.
  // Filters are still packed for the original. Rows: the positions of a window along a line are steps of one
  // loop; if padding makes lines little longer, all lines are rows of one, with unused rows between them
  // (`pitch`). Windows: rows are all positions of the result, and all steps are one loop. PaddedRows: only
  // the tiled dim is padded, so that all rows of a tile take the same steps however long its window is.
  ConvolutionGeometry over(FeatureMapCopy copy) const;

  // Whether windows reach outside the input along a spatial dim.
  bool reads_outside(size_t dim) const;
  bool clips(size_t dim) const { return dim != tiled && reads_outside(dim); }
  bool splits_rows() const { return reads_outside(tiled); }
  // The rows whose whole window is inside the input: from the first one up to the end.
  std::pair<IntExpr, IntExpr> rows_inside() const;
  // Extents of the loops around the tiles, as in shape.outer.
  std::vector<IntExpr> outer_extents() const;
  // Rows of a line of results, if the rows of all lines are counted together (`pitch`).
  int64_t line_length() const { return (out[tiled].value() - 1) % pitch + 1; }
  // Position of a spatial dim but the tiled one among the outer dims.
  size_t outer_position(size_t dim) const { return (groups > 1 ? 2u : 1u) + dim - (dim > tiled ? 1u : 0u); }
  // Whether lanes behind a group's last channel belong to the next group.
  bool shares_vectors(int lanes) const { return groups > 1 && filters % lanes != 0; }
  // Tiles of `rows` rows along the tiled dim, and all tiles of an image per vector of channels; 0 if vectors
  // of results differ from the vectors of sums, if sums are no floats, or if rows vary.
  int64_t tiles_along(int rows) const { return (shape.m + rows - 1) / rows; }
  int64_t tiles(int rows, int lanes) const;

private:
  ConvolutionGeometry over_packed_rows() const;
  ConvolutionGeometry over_packed_windows() const;
  ConvolutionGeometry over_padded_rows() const;
  int64_t packed_channels() const; // channels of a position in a copy
  void take_lines_as_one();
};

} // namespace firn::plan
