// Rules for ranges, all over the histogram of an activation.
#include "compiler/quantize/ranges.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace firn::quantize {
namespace {

// The range that leaves out a share of the values at each end.
Range percentile(const Histogram& histogram, double share) {
  int64_t count = histogram.zeros;
  for (int64_t each : histogram.counts) count += each;
  const double allowed = share * static_cast<double>(count);
  Range range;
  double width = (histogram.high - histogram.low) / Histogram::kBins;
  auto cut = [&](int first, int step) {
    double left_out = 0;
    int bin = first;
    for (; bin >= 0 && bin < Histogram::kBins; bin += step) {
      left_out += static_cast<double>(histogram.counts[static_cast<size_t>(bin)]);
      if (left_out > allowed) break;
    }
    return bin;
  };
  range.low = std::clamp(histogram.low + width * cut(0, 1), histogram.min, 0.0);
  range.high = std::clamp(histogram.low + width * (cut(Histogram::kBins - 1, -1) + 1), 0.0, histogram.max);
  return range;
}

// Sums over the bins below and above an end of a range, which give the squared distances to it.
class Outside {
public:
  explicit Outside(const Histogram& histogram) : histogram_(histogram), sums_(1) {
    for (int bin = 0; bin < Histogram::kBins; ++bin) {
      auto count = static_cast<double>(histogram.counts[static_cast<size_t>(bin)]);
      double x = histogram.center(bin);
      const Sums& last = sums_.back();
      sums_.push_back({last.ones + count, last.values + count * x, last.squares + count * x * x});
    }
  }
  double count() const { return sums_.back().ones; }
  double below(double end) const { return squared(sums_[bins_until(end)], {}, end); }
  double above(double end) const { return squared(sums_.back(), sums_[bins_until(end)], end); }

private:
  struct Sums {
    double ones = 0, values = 0, squares = 0;
  };
  // Bins whose centers lie below.
  size_t bins_until(double end) const {
    double width = (histogram_.high - histogram_.low) / Histogram::kBins;
    return static_cast<size_t>(
        std::clamp(std::ceil((end - histogram_.low) / width - 0.5), 0.0, double{Histogram::kBins}));
  }
  static double squared(const Sums& to, const Sums& from, double end) {
    double sum =
        end * end * (to.ones - from.ones) - 2 * end * (to.values - from.values) + (to.squares - from.squares);
    return std::max(0.0, sum);
  }
  const Histogram& histogram_;
  std::vector<Sums> sums_; // over the first 0, 1, ... bins
};

// The least expected squared error: a step's variance within, the distance to the end outside.
Range least_squares(const Histogram& histogram, int levels) {
  const Outside outside(histogram);
  Range best{histogram.min, histogram.max};
  double min = DBL_MAX;
  // Both ends of a range with two sides move by themselves.
  constexpr int kSteps = 40;
  int low_steps = histogram.min < 0 ? kSteps : 1, high_steps = histogram.max > 0 ? kSteps : 1;
  for (int i = 0; i < low_steps; ++i)
    for (int j = 0; j < high_steps; ++j) {
      Range range{histogram.min * (kSteps - i) / kSteps, histogram.max * (kSteps - j) / kSteps};
      double step = (range.high - range.low) / (levels - 1);
      double error =
          outside.count() * step * step / 12 + outside.below(range.low) + outside.above(range.high);
      if (error < min) min = error, best = range;
    }
  return best;
}

// How far the distribution within a range is from what is left of it on `levels` levels (Kullback and
// Leibler).
double divergence(const Histogram& histogram, int first, int last, int levels) {
  const int bins = last - first + 1;
  std::vector<double> clipped(static_cast<size_t>(bins), 0), quantised(static_cast<size_t>(bins), 0);
  for (int bin = 0; bin < Histogram::kBins; ++bin)
    clipped[static_cast<size_t>(std::clamp(bin - first, 0, bins - 1))] +=
        static_cast<double>(histogram.counts[static_cast<size_t>(bin)]);
  double total = 0, total_quantised = 0;
  for (int level = 0; level < levels; ++level) {
    int begin = static_cast<int>(int64_t{level} * bins / levels);
    int end = static_cast<int>(int64_t{level + 1} * bins / levels);
    double sum = 0, filled = 0;
    for (int i = begin; i < end; ++i) {
      auto count = static_cast<double>(histogram.counts[static_cast<size_t>(first + i)]);
      sum += count;
      filled += count > 0;
    }
    for (int i = begin; i < end; ++i)
      if (histogram.counts[static_cast<size_t>(first + i)] > 0)
        quantised[static_cast<size_t>(i)] = sum / filled;
    total_quantised += sum;
  }
  for (double each : clipped) total += each;
  if (total == 0 || total_quantised == 0) return DBL_MAX;
  double sum = 0;
  for (size_t i = 0; i < clipped.size(); ++i) {
    if (clipped[i] == 0) continue;
    constexpr double kNone = 1e-9; // mass where nothing is left
    double p = clipped[i] / total, q = std::max(quantised[i] / total_quantised, kNone);
    sum += p * std::log(p / q);
  }
  return sum;
}

Range entropy(const Histogram& histogram, int levels) {
  double width = (histogram.high - histogram.low) / Histogram::kBins;
  int zero = static_cast<int>(std::clamp(-histogram.low / width, 0.0, Histogram::kBins - 1.0));
  int reach = std::max(zero, Histogram::kBins - 1 - zero);
  Range best{histogram.min, histogram.max};
  double min = DBL_MAX;
  constexpr int kStep = 32;
  for (int extent = std::min(reach, levels / 2); extent <= reach + kStep; extent += kStep) {
    int first = std::max(0, zero - extent), last = std::min(Histogram::kBins - 1, zero + extent);
    double far = divergence(histogram, first, last, std::min(levels, last - first + 1));
    if (far >= min) continue;
    min = far;
    best = {std::clamp(histogram.low + width * first, histogram.min, 0.0),
            std::clamp(histogram.low + width * (last + 1), 0.0, histogram.max)};
  }
  return best;
}

} // namespace

const char* rule_name(RangeRule rule) {
  switch (rule) {
  case RangeRule::MinMax: return "min-max";
  case RangeRule::Percentile: return "percentile";
  case RangeRule::LeastSquares: return "least squares";
  case RangeRule::Entropy: return "entropy";
  case RangeRule::QuarterRoom: return "min-max and a quarter";
  case RangeRule::HalfRoom: return "min-max and a half";
  }
  FIRN_UNREACHABLE("range rule");
}

Range choose_range(const Histogram& histogram, RangeRule rule, int levels) {
  Range all{histogram.min, histogram.max};
  if (!(all.low < all.high)) return all;
  switch (rule) {
  case RangeRule::MinMax: return all;
  case RangeRule::Percentile: return percentile(histogram, 5e-5);
  case RangeRule::LeastSquares: return least_squares(histogram, levels);
  case RangeRule::Entropy: return levels > Histogram::kBins ? all : entropy(histogram, levels);
  case RangeRule::QuarterRoom: return {1.25 * all.low, 1.25 * all.high};
  case RangeRule::HalfRoom: return {1.5 * all.low, 1.5 * all.high};
  }
  FIRN_UNREACHABLE("range rule");
}

int levels_of(ActivationType type) {
  return type == ActivationType::U16 ? 65536 : 256;
}

Grid make_grid(const Range& range, ActivationType type) {
  Grid grid;
  grid.lowest = type == ActivationType::S8 ? -128 : 0;
  grid.highest = grid.lowest + levels_of(type) - 1;
  double scale = (range.high - range.low) / (levels_of(type) - 1);
  grid.scale = static_cast<float>(std::clamp(scale, double(FLT_MIN), double(FLT_MAX)));
  double zero = std::nearbyint(-range.low / grid.scale) + grid.lowest;
  grid.zero_point = static_cast<int>(std::clamp(zero, double(grid.lowest), double(grid.highest)));
  return grid;
}

} // namespace firn::quantize
