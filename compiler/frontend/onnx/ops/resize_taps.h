// The input elements and their weights for each output element of a resized axis, from static extents.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

enum class ResizeMode { Nearest, Linear, Cubic };

struct ResizeForm {
  ResizeMode mode = ResizeMode::Nearest;
  std::string coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool antialias = false, exclude_outside = false;
};

// One axis: extents, the scale between them, and the part of the input that is read (tf_crop_and_resize).
// Scales and places are f32 throughout, as in PyTorch and ONNX Runtime: other roundings give other extents
// and pick other pixels.
struct AxisResize {
  int axis = 0;
  int64_t input = 0, output = 0;
  float scale = 1;
  float length = 0; // the result's length before rounding: input * scale, or the size given
  float roi_start = 0, roi_end = 1;
};

// Taps of one axis: output i is the sum over t of weights[i][t] * input[indices[i][t]].
struct Taps {
  int count = 1;
  Ints indices;                // [output, count], in [0, input)
  std::vector<double> weights; // empty: one tap of weight 1
  std::vector<bool> outside;   // per output: whether it takes the extrapolation value
};

Taps make_taps(const ResizeForm& form, const AxisResize& axis);

} // namespace firn::onnx
