// How functions of quantised values are computed in integers alone, for CPUs without hardware for floats.
// Their results are integers n that stand for n * unit; fixed_point.h rounds these. The rules, to the bit,
// with floor() of exact quotients and all else in integers:
//
// A function of one byte is a table of 256 numbers, each the integer nearest to its result over `unit`, which
// is the least power of two with which they have 15 bits.
//
// Softmax of N bytes of scale s, the largest of which is m:
//
//   e = nearest integer to exp(s * (x - m)) * 2^E     E = 30 - ceil(log2 N); a table of 256 numbers
//   S = sum of e;   h: the number with 2^31 <= S * 2^h < 2^32
//   d = floor(S * 2^h / 2^16);   r = floor((2^32 - 1) / d)
//   n = floor(floor(e * 2^h / 2^16) * r / 2^17)       unit 2^-15
//
// Norms of N bytes, where c = N * x - (sum of x) of a layer norm, and c = x - zero point of an RMS norm:
//
//   W = floor of 2^16 * (V + epsilon), whose V is N * (sum of x^2) - (sum of x)^2 or the sum of c^2; epsilon
//       is in the unit of V and rounded to 2^-16
//   w = floor(W * 2^h / 2^30);   h: the even number with 2^60 <= W * 2^h < 2^62
//   R = about 2^31 / sqrt(w), by three of Newton's steps from a linear guess
//   n = floor(c' * R / 2^15);    c' = c * 2^(h/2 - 4 - v), rounded, halves up
//
// where 2^v is at least the largest number that the norm can give. The unit is 2^(v - 19), which an RMS norm
// takes sqrt(N) times.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace firn::plan {

inline constexpr int64_t kByteResults = 256;

// Numbers that stand for the results of a function of one byte.
struct FixedPointTable {
  std::vector<int64_t> numbers; // at most 15 bits beside the sign
  double unit = 1;
  double error = 0; // an upper bound of how far numbers are from what they stand for, in units
};
// Nothing if the results are not finite.
std::optional<FixedPointTable> choose_fixed_point_table(const std::vector<double>& results);

// The numbers of a softmax.
struct FixedPointSoftmax {
  static constexpr int kDividendBits = 32, kDivisorBits = 16, kResultShift = 17;
  static constexpr int kUnitBits = 15; // results are at most 2^15
  std::vector<int64_t> exponentials;   // one for each number of steps below the largest, 0 ... 255
  int sum_bits = 0;                    // sums of exponentials are at least 2^sum_bits
  double unit = 1, error = 0;          // see FixedPointTable
};
// Softmax of `length` bytes whose steps are `scale`. Nothing for lengths beyond 1024, whose sums are not
// exact enough.
std::optional<FixedPointSoftmax> choose_fixed_point_softmax(double scale, int64_t length);

// The numbers of a norm.
struct FixedPointNorm {
  static constexpr int kFraction = 16;                     // bits of V's fraction
  static constexpr int kNormalBits = 62, kRootShift = 30;  // W * 2^h has 61 or 62 bits, w 31 or 32
  static constexpr int kValueBits = 16;                    // bits of w that its root is computed of
  static constexpr int kRootBits = 15, kSteps = 3;         // R / 2^15 is the root of 2^16 / v
  static constexpr int64_t kGuess = 69782, kSlope = 39321; // R = kGuess - floor(v * kSlope / 2^16) at first
  // c' has kDividendBits + kLowBits beside its sign, so that its high part times R fits 32 bits.
  static constexpr int kDividendBits = 15, kLowBits = 4, kResultShift = 11;
  int64_t epsilon = 0; // rounded, in units of 2^-kFraction
  int range_bits = 0;  // v
  double unit = 1;
  double max = 0;                 // largest magnitude of n
  double error = 0, relative = 0; // upper bounds: units, and a part of n
};
// A norm of `length` bytes whose steps are `scale`. Nothing if 64 bits do not hold its sums.
std::optional<FixedPointNorm> choose_fixed_point_norm(double scale, int64_t length, double epsilon,
                                                      bool is_centered);

} // namespace firn::plan
