// The arithmetic of coordinates, in f32, and of filters, in f64.
#include "compiler/frontend/onnx/ops/resize_taps.h"

#include "compiler/frontend/onnx/ops/resize_places.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

// The place in the input that output element i comes from.
float place_of(const ResizeForm& form, const AxisResize& axis, int64_t i) {
  float x = static_cast<float>(i), width = static_cast<float>(axis.input),
        output = static_cast<float>(axis.output);
  if (form.coordinates != "tf_crop_and_resize")
    return original_place<float>(form.coordinates, x, {width, output, axis.length, axis.scale});
  if (output <= 1) return 0.5f * (axis.roi_start + axis.roi_end) * (width - 1);
  float within = x * (axis.roi_end - axis.roi_start) * (width - 1) / (output - 1);
  return axis.roi_start * (width - 1) + within;
}

int64_t nearest_index(const std::string& mode, double place) {
  double low = std::floor(place);
  return static_cast<int64_t>(low) + (mode != "floor" && rounds_up(mode, place - low) ? 1 : 0);
}

double cubic_weight(double x, double a) {
  x = std::abs(x);
  return x <= 1 ? near_cubic_weight(x, a) : x < 2 ? far_cubic_weight(x, a) : 0;
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
    float place = place_of(form, axis, i);
    // An index far outside might not fit 64 bits; clamping reads the same edge.
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
