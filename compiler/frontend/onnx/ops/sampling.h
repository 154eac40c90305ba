// Sampling of images at fractional positions, which GridSample and DeformConv share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

enum class Interpolation { Nearest, Linear, Cubic };
// Pixels beyond the edges are zero, the nearest one, or the one mirrored at the border (at pixel centres with
// align_corners, otherwise at pixel edges).
enum class EdgeMode { Zeros, Border, Reflection };

struct Sampling {
  Interpolation interpolation = Interpolation::Linear;
  EdgeMode edge = EdgeMode::Zeros;
  bool align_corners = false;
};

// The elements of `image` [B,C,s...] (no s may be 0) at `points`: per spatial dim a tensor [B,P] of f32 or
// f64 positions in pixels. Result [B,P,C], of the image's dtype. Null after a failure.
Value sample_image(NodeContext& node, Value image, const Values& points, const Sampling& sampling);

} // namespace firn::onnx
