// Multipliers, offsets and shifts of rounding in integers.
#include "compiler/plan/fixed_point.h"

#include <algorithm>
#include <cmath>

namespace firn::plan {
namespace {

constexpr int kMultiplierBits = 15;
constexpr double kMaxMultiplier = (1 << kMultiplierBits) - 1;
constexpr double kMaxSum = 1 << 30; // leaves room for every order of addition
constexpr int kMaxShift = 30;
constexpr double kMaxResult = 512;                  // beyond it all numbers round to the same bytes
constexpr double kSeen = 0.25, kUnseen = 1.0 / 256; // steps that may be lost, and to have one shift for all

// One channel.
class Channel {
public:
  Channel(const std::vector<FixedPointTerm>& terms, size_t channel, double bias)
      : terms_(terms), channel_(channel), bias_(bias) {}

  // The low bits that are cut off, so that the rest times a multiplier stays within the largest sum.
  static int cut(const FixedPointTerm& term) {
    return std::max(0, std::ilogb(std::max(term.max, 1.0)) + 1 - kMultiplierBits);
  }

  double multiplier(const FixedPointTerm& term, int shift) const {
    return std::nearbyint(std::ldexp(factor(term), shift + cut(term)));
  }
  double offset(int shift) const { return std::nearbyint(std::ldexp(bias_ + 0.5, shift)); }

  bool fits(int shift) const {
    double sum = std::abs(offset(shift));
    for (const FixedPointTerm& term : terms_) {
      double max = std::abs(multiplier(term, shift));
      if (!(max <= kMaxMultiplier)) return false;
      sum += std::ldexp(term.max * max, -cut(term)) + 1;
    }
    return sum <= kMaxSum;
  }

  // How far the sum may be from the number that is rounded, near the values of bytes.
  double loss(int shift) const {
    double loss = std::ldexp(0.5, -shift);
    for (const FixedPointTerm& term : terms_) {
      double exact = std::ldexp(factor(term), shift + cut(term)),
             wrong = std::abs(multiplier(term, shift) - exact) / std::max(std::abs(exact), 1e-300);
      double largest = term.max * std::abs(factor(term));
      if (terms_.size() == 1) largest = std::min(largest, kMaxResult + std::abs(bias_));
      loss += (wrong + term.relative) * largest + (cut(term) > 0 ? std::ldexp(1, -shift) : 0);
      loss += term.error * std::abs(factor(term));
    }
    return loss;
  }

  // The largest shift that fits; below 0: none does.
  int best_shift() const {
    int shift = kMaxShift;
    while (shift >= 0 && !fits(shift)) --shift;
    return shift;
  }

private:
  double factor(const FixedPointTerm& term) const { return term.factors[channel_]; }

  const std::vector<FixedPointTerm>& terms_;
  size_t channel_;
  double bias_;
};

bool are_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

} // namespace

bool prefers_fixed_point(const Machine& target) {
  return !target.cpu.has_float;
}

std::optional<FixedPoint> choose_fixed_point(const std::vector<FixedPointTerm>& terms,
                                             const std::vector<double>& biases) {
  FixedPoint chosen;
  if (biases.empty() || !are_finite(biases)) return std::nullopt;
  for (const FixedPointTerm& term : terms) {
    if (!are_finite(term.factors)) return std::nullopt;
    chosen.terms.push_back({Channel::cut(term), {}});
  }
  for (size_t c = 0; c < biases.size(); ++c) {
    Channel channel(terms, c, biases[c]);
    int shift = channel.best_shift();
    if (shift < 0 || channel.loss(shift) > kSeen) return std::nullopt;
    chosen.shifts.push_back(shift);
  }
  int64_t min = *std::min_element(chosen.shifts.begin(), chosen.shifts.end());
  bool has_one_shift = true;
  for (size_t c = 0; c < biases.size(); ++c) {
    Channel channel(terms, c, biases[c]);
    auto shift = static_cast<int>(min);
    has_one_shift &= chosen.shifts[c] == min || (channel.fits(shift) && channel.loss(shift) <= kUnseen);
  }
  for (size_t c = 0; c < biases.size(); ++c) {
    Channel channel(terms, c, biases[c]);
    auto shift = static_cast<int>(has_one_shift ? min : chosen.shifts[c]);
    chosen.offsets.push_back(static_cast<int64_t>(channel.offset(shift)));
    for (size_t i = 0; i < terms.size(); ++i)
      chosen.terms[i].multipliers.push_back(static_cast<int64_t>(channel.multiplier(terms[i], shift)));
  }
  if (has_one_shift) chosen.shifts.assign(1, min);
  return chosen;
}

} // namespace firn::plan
