// 16-bit floats by their definition, to compare code with.
#pragma once

#include "compiler/kernel/kernel.h"

#include <cmath>
#include <cstdint>

namespace firn::test {

// A 16-bit float by its definition.
inline double decode(uint16_t bits, int mantissa_bits) {
  int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1),
      fraction = bits & ((1 << mantissa_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
  return sign * std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// The nearest 16-bit float, ties to even, by search among neighbours.
inline uint16_t encode(double value, int mantissa_bits) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0,
           infinity = static_cast<uint16_t>(((1 << (15 - mantissa_bits)) - 1) << mantissa_bits);
  if (std::isnan(value)) return infinity | 1;
  double magnitude = std::fabs(value);
  uint16_t low = 0, high = infinity; // low <= magnitude, as numbers
  while (high - low > 1) {
    uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (decode(middle, mantissa_bits) <= magnitude ? low : high) = middle;
  }
  if (std::isinf(magnitude)) return sign | infinity;
  double below = decode(low, mantissa_bits);
  // Infinity stands for the number that would follow the largest.
  double above = high == infinity ? below + (below - decode(static_cast<uint16_t>(low - 1), mantissa_bits))
                                  : decode(high, mantissa_bits);
  double down = magnitude - below, up = above - magnitude;
  return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

inline bool is_nan_bits(uint16_t bits, int mantissa_bits) {
  return std::isnan(decode(bits, mantissa_bits));
}

struct HalfKind {
  kernel::Scalar scalar;
  int mantissa_bits;
};
constexpr HalfKind half_kinds[] = {{kernel::Scalar::F16, 10}, {kernel::Scalar::BF16, 7}};

} // namespace firn::test
