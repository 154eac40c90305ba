// Ranges of activations by several rules, and the integers that a range is held in.
#pragma once

#include "compiler/quantize/statistics.h"

#include <array>

namespace firn::quantize {

struct Range {
  double low = 0, high = 0; // 0 lies between
};

// Room: a quarter or a half more than what was seen, for values that spread further than a few samples show.
enum class RangeRule : uint8_t { MinMax, Percentile, LeastSquares, Entropy, QuarterRoom, HalfRoom };
inline constexpr std::array kRangeRules = {RangeRule::MinMax,       RangeRule::Percentile,
                                           RangeRule::LeastSquares, RangeRule::Entropy,
                                           RangeRule::QuarterRoom,  RangeRule::HalfRoom};
const char* rule_name(RangeRule rule);

Range choose_range(const Histogram& histogram, RangeRule rule, int levels);

// q = saturate(round(x / scale) + zero_point), in [lowest, highest].
struct Grid {
  float scale = 1;
  int zero_point = 0, lowest = 0, highest = 255;
};
// The grid of a type over a range; 0 is one of its points.
Grid make_grid(const Range& range, ActivationType type);
int levels_of(ActivationType type);

} // namespace firn::quantize
