// Scales of weights by trying shares of the largest value.
#include "compiler/quantize/weights.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace firn::quantize {
namespace {

constexpr int kHighest = 127;
constexpr float kMinScale = FLT_MIN * (1 << 24); // its product with an activation's scale is a normal number

struct Channels {
  int64_t outer = 1, count = 1, inner = 1;
};

Channels channels_of(const std::vector<int64_t>& dims, int axis) {
  Channels by;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool before = axis < 0 || static_cast<int>(i) < axis;
    (before ? by.outer : static_cast<int>(i) == axis ? by.count : by.inner) *= dims[i];
  }
  return by;
}

int rounded(float value, float scale) {
  return static_cast<int>(std::clamp(std::nearbyint(value / scale), -127.0F, 127.0F));
}

class ChannelScale {
public:
  ChannelScale(std::span<const float> data, const Channels& by, int64_t channel)
      : data_(data), by_(by), channel_(channel) {}

  // The best scale, at least `min`: a channel of tiny values needs no fine steps, and its bias has to fit.
  float best(float min) const {
    float largest = maximum();
    if (largest == 0) return min;
    float best = largest / kHighest;
    double lowest = DBL_MAX;
    for (int percent = 100; percent >= 60; percent -= 4) {
      float scale = std::max(largest * static_cast<float>(percent) / 100 / kHighest, min);
      double error = squared_error(scale);
      if (error < lowest) lowest = error, best = scale;
    }
    return best;
  }
  float maximum() const {
    float largest = 0;
    for_each([&](float value) { largest = std::max(largest, std::fabs(value)); });
    return largest;
  }

private:
  template <class F> void for_each(const F& f) const {
    for (int64_t o = 0; o < by_.outer; ++o) {
      const float* at = data_.data() + (o * by_.count + channel_) * by_.inner;
      for (int64_t i = 0; i < by_.inner; ++i) f(at[i]);
    }
  }
  double squared_error(float scale) const {
    double sum = 0;
    for_each([&](float value) {
      double error = value - static_cast<float>(rounded(value, scale)) * scale;
      sum += error * error;
    });
    return sum;
  }
  std::span<const float> data_;
  Channels by_;
  int64_t channel_;
};

} // namespace

std::string hindrance_of(const Literal& weight) {
  float largest = 0;
  for (float value : weight.data<float>()) {
    if (!std::isfinite(value)) return "its weights are not all finite";
    largest = std::max(largest, std::fabs(value));
  }
  bool is_lost = largest > 0 && largest < kMinScale * kHighest;
  return is_lost ? "its weights are too small for a scale of f32" : "";
}

QuantizedWeight quantize_weight(const Literal& weight, int axis) {
  Channels by = channels_of(weight.dims(), axis);
  std::span<const float> data = weight.data<float>();
  auto integers = std::make_shared<Literal>(DType::I8, weight.dims());
  auto scales = std::make_shared<Literal>(DType::F32,
                                          axis < 0 ? std::vector<int64_t>() : std::vector<int64_t>{by.count});
  float largest = 0;
  for (float value : data) largest = std::max(largest, std::fabs(value));
  const float min = std::max(std::ldexp(largest, -20) / kHighest, kMinScale);
  for (int64_t c = 0; c < by.count; ++c) {
    float scale = ChannelScale(data, by, c).best(min);
    scales->mutable_data<float>()[static_cast<size_t>(c)] = scale;
    for (int64_t o = 0; o < by.outer; ++o)
      for (int64_t i = 0; i < by.inner; ++i) {
        auto at = static_cast<size_t>((o * by.count + c) * by.inner + i);
        integers->mutable_data<int8_t>()[at] = static_cast<int8_t>(rounded(data[at], scale));
      }
  }
  return {integers, scales, axis};
}

LiteralRef dequantize_weight(const QuantizedWeight& weight) {
  Channels by = channels_of(weight.integers->dims(), weight.axis);
  auto values = std::make_shared<Literal>(DType::F32, weight.integers->dims());
  auto from = weight.integers->data<int8_t>();
  auto scales = weight.scales->data<float>();
  auto to = values->mutable_data<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    size_t channel = static_cast<size_t>(static_cast<int64_t>(i) / by.inner % by.count);
    to[i] = static_cast<float>(from[i]) * scales[channel];
  }
  return values;
}

} // namespace firn::quantize
