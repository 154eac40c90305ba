// Resizing of an axis whose extents vary: places and weights are computed by the program, once per row of
// taps, and elements are gathered.
#pragma once

#include "compiler/frontend/onnx/ops/resize_taps.h"

namespace firn::onnx {

struct VaryingResize {
  int axis = 0;
  Dim output;
  std::optional<float> scale; // by which the extent grows; without: what the extents make
  Value common_scale;         // f32 scalar, of all axes that keep their ratio; the output is its whole extent
};

// The extent of this axis of x by a scale, the product in f32 rounded down: as an expression where a fraction
// gives just that for every extent, else counted by the run. At most 2^24, or nothing.
std::optional<Dim> scaled_extent(NodeContext& node, Value x, int axis, float scale);

// How many elements a filter that antialiases may take from beyond an edge, at most.
Dim reach_of_filter(const ResizeForm& form, const Dim& input, const Dim& output);

// x with every element `factor` times in a row along the axis, which that makes `output` long.
Value repeated(NodeContext& node, Value x, int axis, int64_t factor, const Dim& output);

// `x` with one axis resized, in the dtype of x, which is a float unless the mode is nearest. The form does
// not crop.
Value resize_varying(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize);

} // namespace firn::onnx
