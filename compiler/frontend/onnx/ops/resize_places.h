// The formulas of resizing, for numbers and for values of a run (formula.h): the position in the input that
// an element of a resized axis comes from, and the weights of its neighbours.
#pragma once

#include "compiler/frontend/onnx/ops/formula.h"

namespace firn::onnx {

// Extents, the result's length before rounding, and the scale between them, all in f32.
template <class F> struct ResizedAxis { F width, output, length, scale; };

// The input position, in f32, of output element x, by any mode but tf_crop_and_resize.
template <class F> F original_place(const std::string& mode, const F& x, const ResizedAxis<F>& axis) {
  const auto& [width, output, length, scale] = axis;
  if (mode == "align_corners")
    return choose(length == 1.0f, constant_like(x, 0), x * (width - 1.0f) / (length - 1.0f));
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5f) / scale;
  if (mode == "half_pixel_symmetric") {
    F offset = width / 2.0f * (1.0f - output / (scale * width));
    return narrow(wide(offset) + (wide(x) + 0.5) / wide(scale) - 0.5);
  }
  F place = (x + 0.5f) / scale - 0.5f;
  return mode == "pytorch_half_pixel" ? choose(output <= 1.0f, constant_like(x, 0), place) : place;
}

// Whether the nearest element is the one above the position, which is `distance` above the one below; for any
// mode but floor.
template <class F> auto rounds_up(const std::string& mode, const F& distance) {
  return mode == "ceil" ? distance > 0.0 : mode == "round_prefer_ceil" ? distance >= 0.5 : distance > 0.5;
}

// Keys' cubic kernel for distances in [0, 1], and below for those in [1, 2].
template <class F> F near_cubic_weight(const F& x, double a) {
  return (x * (a + 2) - (a + 3)) * x * x + 1.0;
}
template <class F> F far_cubic_weight(const F& x, double a) {
  return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a;
}

} // namespace firn::onnx
