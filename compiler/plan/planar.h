// Convolutions to few channels, such as the last ones of networks that make images: channels would leave most
// lanes empty, so positions of a line lie in lanes instead. The input is copied into planes with padding
// around them, once; then filters are rows of the register tile and every vector of a line is read where it
// lies, shifted by the window's position:
//
//   result[f, y, x...] += filter[f, c, i, j] * planes[c, y * stride + i, x + j ...]
#pragma once

#include "compiler/plan/relayout.h"
#include "compiler/plan/tiling.h"

namespace firn::plan {

struct PlanarGeometry {
  Type input, filter, result;
  std::vector<WindowDim> window; // spatial dims
  int lanes = 1;
  // The input as planes of lines with padding, plain, and some room behind the last for whole vectors.
  Type planes;                                // of the input, as it lies within
  int64_t first = 0;                          // its first element
  int64_t elements = 0;                       // of all planes
  std::vector<int64_t> strides;               // of channel and spatial dims
  Relayout copy;                              // of the input into them
  size_t channel_level = 0, window_level = 0; // of the reduction's loops: that over channels, the first over
                                              // the window
  ContractionShape shape; // rows are filters, columns positions of a line; outside are images and lines
  int64_t flops = 0;

  // Nothing if the convolution cannot be computed so: dtypes but f32, groups, dilated inputs, negative
  // padding, results that are not plain, lines with a stride. `stored`: the result as laid out.
  static std::optional<PlanarGeometry> of(const Instruction& convolution, const Type& stored,
                                          const TargetInfo& target);
  // Whether it does better than vectors of channels: few filters, long lines, and a window that is worth the
  // copy.
  bool is_profitable() const;

  int64_t channels() const { return input.dim(1); }
  int64_t window_size() const;
  int64_t padded_extent(size_t dim) const;
};

} // namespace firn::plan
