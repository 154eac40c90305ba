// Conversions between f32 or f64 and the 16-, 8- and 4-bit float formats, by one generic rounding routine.
#include "compiler/graph/literal.h"

#include <bit>
#include <cmath>

namespace firn {
namespace {

// A binary float format: sign bit (if any), exponent, mantissa. `special` says what the top exponent means.
struct Format {
  enum class Special { Ieee, NanOnlyAllOnes, NanIsNegativeZero, None };
  int exponent_bits, mantissa_bits, bias;
  Special special;
};

constexpr Format kHalf = {5, 10, 15, Format::Special::Ieee};
constexpr Format kE4M3FN = {4, 3, 7, Format::Special::NanOnlyAllOnes};
constexpr Format kE4M3FNUZ = {4, 3, 8, Format::Special::NanIsNegativeZero};
constexpr Format kE5M2 = {5, 2, 15, Format::Special::Ieee};
constexpr Format kE5M2FNUZ = {5, 2, 16, Format::Special::NanIsNegativeZero};
constexpr Format kE2M1 = {2, 1, 1, Format::Special::None};

uint32_t nan_bits(const Format& format) {
  uint32_t all = (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  switch (format.special) {
  case Format::Special::Ieee: return all & ~((1u << (format.mantissa_bits - 1)) - 1); // quiet NaN
  case Format::Special::NanOnlyAllOnes: return all;
  case Format::Special::NanIsNegativeZero: return all + 1;
  case Format::Special::None: break;
  }
  return all;
}

// Bits of the largest finite magnitude.
uint32_t largest_bits(const Format& format) {
  uint32_t all = (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  if (format.special == Format::Special::Ieee) return all - (1u << format.mantissa_bits);
  return format.special == Format::Special::NanOnlyAllOnes ? all - 1 : all;
}

uint32_t encode(const Format& format, double value, bool saturate) {
  uint32_t sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  if (std::isnan(value)) {
    if (format.special == Format::Special::None)
      return sign ^ 1u << (format.exponent_bits + format.mantissa_bits);
    if (format.special == Format::Special::NanIsNegativeZero) return nan_bits(format);
    return sign | nan_bits(format);
  }
  double magnitude = std::fabs(value);
  uint32_t bits;
  if (magnitude >= std::ldexp(1.0, 128)) { // beyond every format: also keeps the integers below small
    bits = UINT32_MAX;
  } else {
    int exponent = 0;
    std::frexp(magnitude, &exponent); // magnitude = f * 2^exponent, f in [0.5, 1)
    int step =
        std::max(exponent - 1, 1 - format.bias) - format.mantissa_bits; // weight of the last mantissa bit
    double units = std::nearbyint(std::ldexp(magnitude, -step));        // ties to even
    // Counting in units of the subnormal step, the encoding of a magnitude is exponent field and mantissa as
    // one number.
    int field = step + format.mantissa_bits - (1 - format.bias);
    bits = static_cast<uint32_t>(units) + (static_cast<uint32_t>(field) << format.mantissa_bits);
    if (magnitude == 0) bits = 0;
  }
  if (bits > largest_bits(format)) {
    if (saturate || format.special == Format::Special::None) {
      bits = largest_bits(format);
    } else if (format.special == Format::Special::Ieee) {
      bits = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    } else {
      return format.special == Format::Special::NanIsNegativeZero ? nan_bits(format)
                                                                  : sign | nan_bits(format);
    }
  }
  if (bits == 0 && format.special == Format::Special::NanIsNegativeZero)
    return 0; // there is no negative zero
  return sign | bits;
}

double decode(const Format& format, uint32_t bits) {
  uint32_t sign_bit = 1u << (format.exponent_bits + format.mantissa_bits);
  uint32_t magnitude = bits & (sign_bit - 1);
  uint32_t exponent = magnitude >> format.mantissa_bits,
           mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  double sign = bits & sign_bit ? -1 : 1;
  if (format.special == Format::Special::NanIsNegativeZero && bits == sign_bit) return NAN;
  if (format.special == Format::Special::NanOnlyAllOnes && magnitude == sign_bit - 1) return NAN;
  if (format.special == Format::Special::Ieee && exponent == (1u << format.exponent_bits) - 1)
    return mantissa ? std::copysign(NAN, sign) : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  return sign * std::ldexp(mantissa + (1u << format.mantissa_bits),
                           static_cast<int>(exponent) - format.bias - format.mantissa_bits);
}

const Format& format_of(DType dtype) {
  switch (dtype) {
  case DType::F8E4M3FN: return kE4M3FN;
  case DType::F8E4M3FNUZ: return kE4M3FNUZ;
  case DType::F8E5M2: return kE5M2;
  case DType::F8E5M2FNUZ: return kE5M2FNUZ;
  case DType::F4E2M1: return kE2M1;
  default: FIRN_UNREACHABLE("not a narrow float format");
  }
}

} // namespace

float half_to_float(uint16_t bits) {
  return static_cast<float>(decode(kHalf, bits));
}
uint16_t float_to_half(float value) {
  return static_cast<uint16_t>(encode(kHalf, value, /*saturate=*/false));
}
uint16_t double_to_half(double value) {
  return static_cast<uint16_t>(encode(kHalf, value, /*saturate=*/false));
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bfloat16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float float8_to_float(DType dtype, uint8_t bits) {
  if (dtype == DType::F8E8M0) return bits == 255 ? NAN : static_cast<float>(std::ldexp(1.0, bits - 127));
  return static_cast<float>(decode(format_of(dtype), bits));
}

uint8_t float_to_float8(DType dtype, float value, bool saturate) {
  return double_to_float8(dtype, value, saturate);
}

uint8_t double_to_float8(DType dtype, double value, bool saturate) {
  if (dtype != DType::F8E8M0) return static_cast<uint8_t>(encode(format_of(dtype), value, saturate));
  // Powers of two only: the exponent, rounded to nearest with ties upwards.
  if (std::isnan(value) || value < 0) return 255;
  if (value == 0) return 0;
  if (std::isinf(value)) return saturate ? 254 : 255;
  int exponent = 0;
  double fraction = std::frexp(value, &exponent); // [0.5, 1)
  int field = exponent - 1 + (fraction >= 0.75 ? 1 : 0) + 127;
  if (field > 254) return saturate ? 254 : 255;
  return static_cast<uint8_t>(std::max(field, 0));
}

} // namespace firn
