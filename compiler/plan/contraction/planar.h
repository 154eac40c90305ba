// Convolutions to few channels, such as the last ones of networks that make images: channels would leave most
// lanes empty, so positions of a line lie in lanes instead. The input is copied into planes with padding
// around them, once; then filters are rows of the register tile and every vector of a line is read where it
// lies, shifted by the window's position:
//
//   result[f, y, x...] += filter[f, c, i, j] * planes[c, y * stride + i, x + j ...]
#pragma once

#include "compiler/plan/contraction/tiling.h"
#include "compiler/plan/relayout/relayout.h"

namespace firn::plan {

struct PlanarGeometry {
  Type input, filter, result;
  std::vector<WindowDim> window; // spatial dims
  int lanes = 1;
  // The input as planes of lines with padding, in a plain layout, and some room behind the last for whole
  // vectors.
  Type planes;                  // type of the input within the planes
  int64_t first = 0;            // place of its first element
  int64_t elements = 0;         // elements of all planes
  std::vector<int64_t> strides; // strides of channel and spatial dims
  Relayout copy;                // how the input is copied into the planes
  int64_t copy_lanes = 1;       // elements of a vector of that copy
  // Numbers of the reduction's loops: that over channels, and the first over the window.
  size_t channel_level = 0, window_level = 0;
  ContractionShape shape; // rows are filters, columns positions of a line; outer dims are images and lines
  int64_t flops = 0;

  // Nothing if the convolution cannot be computed in planes: dtypes other than f32, groups, dilated inputs,
  // negative padding, results that are not plain, lines with a stride. `stored`: the result as laid out.
  static std::optional<PlanarGeometry> of(const Instruction& convolution, const Type& stored,
                                          const Machine& target);

  int64_t channels() const { return input.dim(1); }
  int64_t window_size() const;
  int64_t padded_extent(size_t dim) const;
};

} // namespace firn::plan
