// Tables, units and bounds of errors of functions in integers.
#include "compiler/plan/fixed_point_functions.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

constexpr int kTableBits = 15;
constexpr int64_t kMaxSoftmaxLength = 1024, kMaxNormLength = 1 << 14;
constexpr int kMaxSumBits = 30;
constexpr double kMaxEpsilon = 0x1p59; // leaves room for the sums beside it

// The least n with 2^n >= x.
int ceil_log2(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  return mantissa == 0.5 ? exponent - 1 : exponent;
}

} // namespace

std::optional<FixedPointTable> choose_fixed_point_table(const std::vector<double>& results) {
  double max = 0;
  for (double result : results) {
    if (!std::isfinite(result)) return std::nullopt;
    max = std::max(max, std::abs(result));
  }
  FixedPointTable table;
  if (max > 0) table.unit = std::ldexp(1.0, ceil_log2(max / ((1 << kTableBits) - 1)));
  if (!std::isnormal(table.unit)) return std::nullopt;
  for (double result : results) {
    double exact = result / table.unit, number = std::nearbyint(exact);
    table.error = std::max(table.error, std::abs(exact - number));
    table.numbers.push_back(static_cast<int64_t>(number));
  }
  return table;
}

std::optional<FixedPointSoftmax> choose_fixed_point_softmax(double scale, int64_t length) {
  if (length < 1 || length > kMaxSoftmaxLength || !(scale > 0) || !std::isfinite(scale)) return std::nullopt;
  FixedPointSoftmax softmax;
  softmax.sum_bits = kMaxSumBits - ceil_log2(static_cast<double>(length));
  double wrong = 0;
  for (int64_t steps = 0; steps < kByteResults; ++steps) {
    double exact = std::ldexp(std::exp(-scale * static_cast<double>(steps)), softmax.sum_bits);
    softmax.exponentials.push_back(static_cast<int64_t>(std::nearbyint(exact)));
    wrong = std::max(wrong, std::abs(exact - std::nearbyint(exact)));
  }
  softmax.unit = std::ldexp(1.0, -softmax.kUnitBits);
  // Divisor and reciprocal lose a unit each, and so do the dividend and the result.
  double of_sum = wrong * static_cast<double>(length) / std::ldexp(1.0, softmax.sum_bits);
  softmax.error = 4 + of_sum / softmax.unit;
  return softmax;
}

std::optional<FixedPointNorm> choose_fixed_point_norm(double scale, int64_t length, double epsilon,
                                                      bool is_centered) {
  if (length < 1 || length > kMaxNormLength || !(scale > 0) || !(epsilon >= 0)) return std::nullopt;
  const auto count = static_cast<double>(length);
  FixedPointNorm norm;
  double in_steps = epsilon / scale / scale * (is_centered ? count * count : count);
  double rounded = std::nearbyint(std::ldexp(in_steps, norm.kFraction));
  if (!(rounded <= kMaxEpsilon)) return std::nullopt;
  norm.epsilon = static_cast<int64_t>(rounded);
  norm.range_bits = is_centered ? ceil_log2(std::sqrt(count)) : 0;
  norm.max = std::ldexp(1.0, norm.kResultShift + 8);
  norm.unit = std::ldexp(is_centered ? 1.0 : std::sqrt(count), norm.range_bits) / norm.max;
  // The dividend is rounded to half of a unit, which the root multiplies by at most 2^16; the result is cut.
  norm.error = std::ldexp(0.5, norm.kValueBits - norm.kResultShift - norm.kLowBits) + 1;
  norm.relative = std::ldexp(1.0, -13);
  return norm;
}

} // namespace firn::plan
