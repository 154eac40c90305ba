// Resizing of an axis whose extents vary: places and weights are computed by the program, once per row of
// taps, and elements are gathered.
#pragma once

#include "compiler/frontend/onnx/ops/resize_taps.h"

namespace firn::onnx {

struct VaryingResize {
  int axis = 0;
  Dim output;
  std::optional<float> scale; // output / input; without: the quotient of the extents
  Value common_scale;         // f32 scalar shared by axes that keep their ratio; `output` is rounded
};

// The scaled extent of this axis of x: the product in f32, rounded down. It is an expression if a fraction
// gives the same for every extent, else counted by the run. Nothing if it may exceed 2^24.
std::optional<Dim> scaled_extent(NodeContext& node, Value x, int axis, float scale);

// An upper bound on the elements beyond an edge that an antialiasing filter reads.
Dim reach_of_filter(const ResizeForm& form, const Dim& input, const Dim& output);

// x with every element repeated `factor` times along the axis, whose extent becomes `output`.
Value repeated(NodeContext& node, Value x, int axis, int64_t factor, const Dim& output);

// `x` with one axis resized, in the dtype of x, which is a float unless the mode is nearest. The form does
// not crop.
Value resize_varying(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize);

} // namespace firn::onnx
