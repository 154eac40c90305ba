// Walks over activations, channel by channel.
#include "compiler/quantize/statistics.h"

#include <algorithm>
#include <cmath>

namespace firn::quantize {
namespace {

struct Walk {
  int64_t outer = 1, count = 1, inner = 1; // elements before, along and behind the axis
};

Walk walk_of(const Literal& tensor, int axis) {
  Walk walk;
  auto rank = static_cast<int>(tensor.dims().size());
  int at = axis < 0 ? rank + axis : axis;
  if (at < 0 || at >= rank) return {tensor.num_elements(), 1, 1};
  for (int i = 0; i < rank; ++i) {
    int64_t& part = i < at ? walk.outer : i == at ? walk.count : walk.inner;
    part *= tensor.dims()[static_cast<size_t>(i)];
  }
  return walk;
}

// f(channel, values) for every run of elements of one channel.
template <class F> void for_each_run(const Literal& tensor, const Walk& by, const F& f) {
  const float* at = tensor.data<float>().data();
  for (int64_t o = 0; o < by.outer; ++o)
    for (int64_t c = 0; c < by.count; ++c, at += by.inner)
      f(static_cast<size_t>(c), std::span<const float>(at, static_cast<size_t>(by.inner)));
}

} // namespace

void Statistics::Bounds::merge(const Bounds& other) {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  varies |= other.varies || channels.size() != other.channels.size();
  channels.places += other.channels.places;
  if (varies) {
    channels = {};
    return;
  }
  for (size_t c = 0; c < channels.low.size(); ++c) {
    channels.low[c] = std::min(channels.low[c], other.channels.low[c]);
    channels.high[c] = std::max(channels.high[c], other.channels.high[c]);
    channels.squares[c] += other.channels.squares[c];
  }
}

Statistics Statistics::merged(const std::vector<const Statistics*>& parts) {
  Statistics whole(parts[0]->axes_);
  for (const Statistics* part : parts) {
    for (const auto& [name, bounds] : part->bounds_)
      if (auto [entry, is_new] = whole.bounds_.emplace(name, bounds); !is_new) entry->second.merge(bounds);
    for (const auto& [name, histogram] : part->histograms_) {
      auto [entry, is_new] = whole.histograms_.emplace(name, histogram);
      if (is_new) continue;
      Histogram& sum = entry->second;
      sum.min = std::min(sum.min, histogram.min);
      sum.max = std::max(sum.max, histogram.max);
      sum.zeros += histogram.zeros;
      for (size_t i = 0; i < sum.counts.size(); ++i) sum.counts[i] += histogram.counts[i];
    }
  }
  return whole;
}

Result Statistics::add_bounds(const Sample& sample, const Tensors& tensors) {
  for (const auto& [name, axis] : axes_) {
    auto found = tensors.find(name);
    if (found == tensors.end() || found->second->dtype() != DType::F32 || found->second->num_elements() == 0)
      continue;
    const Literal& tensor = *found->second;
    Walk by = walk_of(tensor, axis);
    auto [entry, is_new] = bounds_.try_emplace(name);
    Bounds& bounds = entry->second;
    Channels& channels = bounds.channels;
    if (is_new) {
      bounds.low = INFINITY, bounds.high = -INFINITY;
      channels.low.assign(static_cast<size_t>(by.count), INFINITY);
      channels.high.assign(static_cast<size_t>(by.count), -INFINITY);
      channels.squares.assign(static_cast<size_t>(by.count), 0);
      channels.rank = static_cast<int64_t>(tensor.dims().size());
    }
    bounds.varies |= channels.size() != by.count;
    if (bounds.varies) channels = {};
    channels.places += by.outer * by.inner;
    bool finite = true;
    for_each_run(tensor, by, [&](size_t channel, std::span<const float> values) {
      float low = INFINITY, high = -INFINITY;
      double squares = 0;
      for (float value : values) {
        finite &= std::isfinite(value);
        low = std::min(low, value);
        high = std::max(high, value);
        squares += static_cast<double>(value) * value;
      }
      bounds.low = std::min(bounds.low, low);
      bounds.high = std::max(bounds.high, high);
      if (bounds.varies) return;
      channels.low[channel] = std::min(channels.low[channel], low);
      channels.high[channel] = std::max(channels.high[channel], high);
      channels.squares[channel] += squares;
    });
    if (!finite)
      return model_error("'" + sample.name + "' makes '" + name +
                         "' infinite or no number: activations of calibration data have to be finite");
  }
  return {};
}

bool Statistics::is_constant(const std::string& tensor) const {
  const Bounds& bounds = bounds_.at(tensor);
  return !(bounds.low < bounds.high);
}

void Statistics::add_histogram(const Tensors& tensors, const Statistics& whole) {
  for (const auto& [name, bounds] : bounds_) {
    auto found = tensors.find(name);
    if (found == tensors.end() || found->second->num_elements() == 0) continue;
    auto [entry, is_new] = histograms_.try_emplace(name);
    Histogram& histogram = entry->second;
    if (is_new) {
      const Bounds& all = whole.bounds_.at(name);
      histogram.counts.assign(Histogram::kBins, 0);
      histogram.low = std::min(0.0F, all.low), histogram.high = std::max(0.0F, all.high);
      histogram.min = std::min(0.0F, bounds.low), histogram.max = std::max(0.0F, bounds.high);
    }
    double width = histogram.high - histogram.low;
    auto scale = static_cast<float>(width > 0 ? Histogram::kBins / width : 0);
    auto low = static_cast<float>(histogram.low);
    for (float value : found->second->data<float>()) {
      int bin = static_cast<int>((value - low) * scale);
      histogram.zeros += value == 0;
      histogram.counts[static_cast<size_t>(std::clamp(bin, 0, Histogram::kBins - 1))] += value != 0;
    }
  }
}

} // namespace firn::quantize
