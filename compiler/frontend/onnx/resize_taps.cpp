// The arithmetic of coordinates, in f32, and of filters, in f64.
#include "compiler/frontend/onnx/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

// The place in the input that output element i comes from.
float original_place(const ResizeForm& form, const AxisResize& axis, int64_t i) {
  float x = static_cast<float>(i), scale = axis.scale;
  float width = static_cast<float>(axis.input), output = static_cast<float>(axis.output);
  const std::string& mode = form.coordinates;
  if (mode == "align_corners") return axis.length == 1 ? 0 : x * (width - 1) / (axis.length - 1);
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5f) / scale;
  if (mode == "tf_crop_and_resize") {
    if (output <= 1) return 0.5f * (axis.roi_start + axis.roi_end) * (width - 1);
    float within = x * (axis.roi_end - axis.roi_start) * (width - 1) / (output - 1);
    return axis.roi_start * (width - 1) + within;
  }
  if (mode == "pytorch_half_pixel" && output <= 1) return 0;
  if (mode == "half_pixel_symmetric") {
    float offset = width / 2 * (1 - output / (scale * width));
    return static_cast<float>(offset + (static_cast<double>(x) + 0.5) / scale - 0.5);
  }
  return (x + 0.5f) / scale - 0.5f;
}

int64_t nearest_index(const std::string& mode, double place) {
  double low = std::floor(place), ratio = place - low;
  bool up = mode == "ceil"                ? ratio > 0
            : mode == "floor"             ? false
            : mode == "round_prefer_ceil" ? ratio >= 0.5
                                          : ratio > 0.5;
  return static_cast<int64_t>(low) + (up ? 1 : 0);
}

double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Weights of the taps around a place whose fractional part is `ratio`, and the offset of the first tap from
// its floor. With antialias and a scale below 1 the filter is stretched by 1/scale.
std::vector<double> filter(const ResizeForm& form, double scale, double ratio, int64_t& first) {
  bool cubic = form.mode == ResizeMode::Cubic;
  double shrink = form.antialias ? std::min(scale, 1.0) : 1.0;
  double support = cubic ? 2 : 1;
  first = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
  int64_t count = 2 - 2 * first;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t t = 0; t < count; ++t) {
    double x = (static_cast<double>(first + t) - ratio) * shrink;
    weights.push_back(cubic ? cubic_weight(x, form.cubic_a) : std::clamp(1 - std::abs(x), 0.0, 1.0));
    sum += weights.back();
  }
  if (form.antialias && sum != 0)
    for (double& weight : weights) weight /= sum;
  return weights;
}

void add_taps(Taps& taps, const ResizeForm& form, const AxisResize& axis, double place) {
  int64_t base = static_cast<int64_t>(std::floor(place)), first = 0;
  std::vector<double> weights = filter(form, axis.scale, place - std::floor(place), first);
  double sum = 0;
  for (size_t t = 0; t < weights.size(); ++t) {
    int64_t index = base + first + static_cast<int64_t>(t);
    if (form.exclude_outside && (index < 0 || index >= axis.input)) weights[t] = 0;
    sum += weights[t];
    taps.indices.push_back(std::clamp<int64_t>(index, 0, axis.input - 1));
  }
  if (form.exclude_outside && sum != 0)
    for (double& weight : weights) weight /= sum;
  taps.count = static_cast<int>(weights.size());
  taps.weights.insert(taps.weights.end(), weights.begin(), weights.end());
}

} // namespace

Taps make_taps(const ResizeForm& form, const AxisResize& axis) {
  Taps taps;
  for (int64_t i = 0; i < axis.output; ++i) {
    float place = original_place(form, axis, i);
    // Far outside, the index would leave 64 bits; clamping reads the same edge.
    place = std::isnan(place) ? 0 : std::clamp(place, -4.0e9f, 8.0e9f);
    bool outside =
        form.coordinates == "tf_crop_and_resize" && (place < 0 || place > static_cast<float>(axis.input - 1));
    taps.outside.push_back(outside);
    if (form.mode == ResizeMode::Nearest)
      taps.indices.push_back(std::clamp<int64_t>(nearest_index(form.nearest, place), 0, axis.input - 1));
    else
      add_taps(taps, form, axis, place);
  }
  return taps;
}

} // namespace firn::onnx
