// Walks over activations, channel by channel.
#include "compiler/quantize/statistics.h"

#include <algorithm>
#include <cmath>

namespace firn::quantize {
namespace {

struct Channels {
  int64_t outer = 1, count = 1, inner = 1; // elements before, along and behind the axis
};

Channels channels_of(const Literal& tensor, int axis) {
  Channels channels;
  auto rank = static_cast<int>(tensor.dims().size());
  int at = axis < 0 ? rank + axis : axis;
  if (at < 0 || at >= rank) return {tensor.num_elements(), 1, 1};
  for (int i = 0; i < rank; ++i) {
    int64_t& part = i < at ? channels.outer : i == at ? channels.count : channels.inner;
    part *= tensor.dims()[static_cast<size_t>(i)];
  }
  return channels;
}

// f(channel, values) for every run of elements of one channel.
template <class F> void for_each_run(const Literal& tensor, const Channels& by, const F& f) {
  const float* at = tensor.data<float>().data();
  for (int64_t o = 0; o < by.outer; ++o)
    for (int64_t c = 0; c < by.count; ++c, at += by.inner)
      f(static_cast<size_t>(c), std::span<const float>(at, static_cast<size_t>(by.inner)));
}

} // namespace

Result Statistics::add_bounds(const Sample& sample, const Tensors& tensors) {
  for (const auto& [name, axis] : axes_) {
    auto found = tensors.find(name);
    if (found == tensors.end() || found->second->dtype() != DType::F32 || found->second->num_elements() == 0)
      continue;
    const Literal& tensor = *found->second;
    Channels by = channels_of(tensor, axis);
    auto [entry, is_new] = bounds_.try_emplace(name);
    Bounds& bounds = entry->second;
    auto count = static_cast<size_t>(by.count);
    if (is_new) {
      bounds.low = INFINITY, bounds.high = -INFINITY;
      bounds.channel_low.assign(count, INFINITY);
      bounds.channel_high.assign(count, -INFINITY);
    }
    bounds.varies |= bounds.channel_low.size() != count;
    bool finite = true;
    for_each_run(tensor, by, [&](size_t channel, std::span<const float> values) {
      float low = INFINITY, high = -INFINITY;
      for (float value : values) {
        finite &= std::isfinite(value);
        low = std::min(low, value);
        high = std::max(high, value);
      }
      bounds.low = std::min(bounds.low, low);
      bounds.high = std::max(bounds.high, high);
      if (bounds.varies) return;
      bounds.channel_low[channel] = std::min(bounds.channel_low[channel], low);
      bounds.channel_high[channel] = std::max(bounds.channel_high[channel], high);
    });
    if (!finite)
      return model_error("'" + sample.name + "' makes '" + name +
                         "' infinite or no number: activations of calibration data have to be finite");
    bounds.channels.clear();
    for (size_t c = 0; c < bounds.channel_low.size() && !bounds.varies; ++c)
      bounds.channels.push_back(
          std::max(std::fabs(bounds.channel_low[c]), std::fabs(bounds.channel_high[c])));
  }
  return {};
}

bool Statistics::is_constant(const std::string& tensor) const {
  const Bounds& bounds = bounds_.at(tensor);
  return !(bounds.low < bounds.high);
}

void Statistics::add_histogram(const Tensors& tensors) {
  for (const auto& [name, bounds] : bounds_) {
    auto found = tensors.find(name);
    if (found == tensors.end() || found->second->num_elements() == 0) continue;
    auto scaled = factors_.find(name);
    auto factor = [&](size_t channel) { return scaled == factors_.end() ? 1.0F : scaled->second[channel]; };
    auto [entry, is_new] = histograms_.try_emplace(name);
    Histogram& histogram = entry->second;
    if (is_new) {
      histogram.counts.assign(Histogram::kBins, 0);
      histogram.low = std::min(0.0F, bounds.low), histogram.high = std::max(0.0F, bounds.high);
      if (scaled != factors_.end()) histogram.low = histogram.high = 0;
      for (size_t c = 0; scaled != factors_.end() && c < scaled->second.size(); ++c) {
        histogram.low = std::min(histogram.low, double(bounds.channel_low[c] / factor(c)));
        histogram.high = std::max(histogram.high, double(bounds.channel_high[c] / factor(c)));
      }
    }
    double width = histogram.high - histogram.low;
    auto scale = static_cast<float>(width > 0 ? Histogram::kBins / width : 0);
    auto low = static_cast<float>(histogram.low);
    for_each_run(*found->second, channels_of(*found->second, axes_.at(name)),
                 [&](size_t channel, std::span<const float> values) {
                   float inverse = 1 / factor(channel);
                   for (float value : values) {
                     int bin = static_cast<int>((value * inverse - low) * scale);
                     histogram.zeros += value == 0;
                     histogram.counts[static_cast<size_t>(std::clamp(bin, 0, Histogram::kBins - 1))] +=
                         value != 0;
                   }
                 });
  }
}

} // namespace firn::quantize
