// Storage types for element types that C++17 lacks: small floats that convert to and from float, complex
// numbers, and packed elements below one byte. They hold data; arithmetic happens in float.
#ifndef FIRN_DTYPES_H
#define FIRN_DTYPES_H

#include "firn/abi.h"

#include <cstdint>
#include <cstring>

namespace firn {
inline namespace rt2 {
namespace detail {

// How a small float spends its largest codes.
enum class Specials {
  Ieee,            // an exponent of ones: infinities and NaNs; values too large become infinite
  Saturating,      // codes of Ieee, but values too large and infinities become the largest finite value, like
                   // in ONNX's Cast
  NanOnly,         // all ones is NaN, there is no infinity
  NegativeZeroNan, // the code of -0 is NaN; neither infinity nor -0
  None             // every code is a number
};

template <int exponent_bits, int mantissa_bits, int bias, Specials specials> struct SmallFloatCode {
  FIRN_HIDDEN static constexpr std::uint32_t sign = 1u << (exponent_bits + mantissa_bits);
  FIRN_HIDDEN static constexpr std::uint32_t magnitude = sign - 1u;
  FIRN_HIDDEN static constexpr std::uint32_t exponent_ones = magnitude - ((1u << mantissa_bits) - 1u);
  FIRN_HIDDEN static constexpr bool has_infinity =
      specials == Specials::Ieee || specials == Specials::Saturating;
  FIRN_HIDDEN static constexpr std::uint32_t quiet_nan = specials == Specials::NegativeZeroNan ? sign
                                                         : specials == Specials::NanOnly
                                                             ? magnitude
                                                             : exponent_ones | (1u << (mantissa_bits - 1));
  FIRN_HIDDEN static constexpr std::uint32_t largest = has_infinity                    ? exponent_ones - 1u
                                                       : specials == Specials::NanOnly ? magnitude - 1u
                                                                                       : magnitude;

  // Rounds to nearest, ties to even.
  FIRN_HIDDEN static std::uint32_t encode(float value) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t absolute = bits & 0x7fffffffu;
    const std::uint32_t negative = (bits >> 31) != 0 ? sign : 0u;
    if (absolute > 0x7f800000u) {
      if (specials == Specials::None) return largest;
      return specials == Specials::NegativeZeroNan ? quiet_nan : quiet_nan | negative;
    }
    const std::uint32_t code = absolute == 0x7f800000u ? magnitude : round(absolute);
    if (code > largest) return negative | (specials == Specials::Ieee ? exponent_ones : largest);
    return code == 0 && specials == Specials::NegativeZeroNan ? 0u : negative | code;
  }

  FIRN_HIDDEN static float decode(std::uint32_t code) noexcept {
    const std::uint32_t absolute = code & magnitude;
    std::uint32_t bits;
    if (is_nan(code)) {
      bits = 0x7fc00000u;
    } else if (has_infinity && absolute == exponent_ones) {
      bits = 0x7f800000u;
    } else if (absolute >> mantissa_bits == 0 && bias < 127) {
      const float tiny = static_cast<float>(absolute) / unit;
      std::memcpy(&bits, &tiny, sizeof bits);
    } else {
      bits = (absolute << (23 - mantissa_bits)) + (static_cast<std::uint32_t>(127 - bias) << 23);
    }
    if ((code & sign) != 0 && !(specials == Specials::NegativeZeroNan && absolute == 0)) bits |= 0x80000000u;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

private:
  // Reciprocal of the smallest subnormal; formats of float's own exponent range never use it.
  FIRN_HIDDEN static constexpr float unit =
      bias < 127 ? static_cast<float>(std::uint64_t{1} << ((bias + mantissa_bits - 1) & 63)) : 1.0f;

  FIRN_HIDDEN static constexpr bool is_nan(std::uint32_t code) noexcept {
    if (specials == Specials::None) return false;
    if (specials == Specials::NegativeZeroNan) return code == sign;
    if (specials == Specials::NanOnly) return (code & magnitude) == magnitude;
    return (code & magnitude) > exponent_ones;
  }

  // The code of a finite float's magnitude; may exceed `largest`.
  FIRN_HIDDEN static std::uint32_t round(std::uint32_t absolute) noexcept {
    const int exponent = static_cast<int>(absolute >> 23);
    int shift = 23 - mantissa_bits;
    std::uint32_t kept = absolute;
    if (exponent < 128 - bias) { // subnormal in this format
      kept = exponent == 0 ? absolute : (absolute & 0x7fffffu) | 0x800000u;
      shift += 128 - bias - (exponent == 0 ? 1 : exponent);
      if (shift > 25) return 0;
    } else {
      kept -= static_cast<std::uint32_t>(127 - bias) << 23;
    }
    const std::uint32_t half_minus_one = (1u << (shift - 1)) - 1u;
    return (kept + half_minus_one + ((kept >> shift) & 1u)) >> shift;
  }
};

} // namespace detail

// Defines a storage type whose bits are those of the format.
#define FIRN_SMALL_FLOAT(name, storage, exponent_bits, mantissa_bits, bias, specials)                        \
  struct name {                                                                                              \
    using Code = detail::SmallFloatCode<exponent_bits, mantissa_bits, bias, detail::Specials::specials>;     \
    storage bits;                                                                                            \
    FIRN_HIDDEN name() = default;                                                                            \
    FIRN_HIDDEN name(float value) noexcept : bits(static_cast<storage>(Code::encode(value))) {}              \
    FIRN_HIDDEN operator float() const noexcept { return Code::decode(bits); }                               \
  };
FIRN_SMALL_FLOAT(half, std::uint16_t, 5, 10, 15, Ieee)
FIRN_SMALL_FLOAT(bfloat16, std::uint16_t, 8, 7, 127, Ieee)
FIRN_SMALL_FLOAT(float8_e4m3fn, std::uint8_t, 4, 3, 7, NanOnly)
FIRN_SMALL_FLOAT(float8_e4m3fnuz, std::uint8_t, 4, 3, 8, NegativeZeroNan)
FIRN_SMALL_FLOAT(float8_e5m2, std::uint8_t, 5, 2, 15, Saturating)
FIRN_SMALL_FLOAT(float8_e5m2fnuz, std::uint8_t, 5, 2, 16, NegativeZeroNan)
#undef FIRN_SMALL_FLOAT

// A power of two, 2^(bits - 127); 255 is NaN. Conversion from float takes the nearest power of two from
// above.
struct float8_e8m0 {
  std::uint8_t bits;
  FIRN_HIDDEN float8_e8m0() = default;
  FIRN_HIDDEN float8_e8m0(float value) noexcept : bits(encode(value)) {}
  FIRN_HIDDEN operator float() const noexcept {
    const std::uint32_t code = bits;
    const std::uint32_t word = code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }

private:
  FIRN_HIDDEN static std::uint8_t encode(float value) noexcept {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    if ((word & 0x7fffffffu) > 0x7f800000u) return 255;
    if ((word >> 31) != 0 || word <= 0x00400000u) return 0;
    const std::uint32_t code = (word + 0x7fffffu) >> 23;
    return static_cast<std::uint8_t>(code > 254 ? 254 : code);
  }
};

// Layout of std::complex<float> and std::complex<double>.
struct complex64 {
  float real, imag;
};
struct complex128 {
  double real, imag;
};

// Element types below one byte: low bits first, as firn::PackedView reads them.
struct int4 {
  using value_type = std::int8_t;
  FIRN_HIDDEN static constexpr unsigned bits = 4;
  FIRN_HIDDEN static value_type decode(unsigned code) noexcept {
    return static_cast<value_type>(static_cast<int>(code ^ 8u) - 8);
  }
  FIRN_HIDDEN static unsigned encode(value_type value) noexcept { return static_cast<unsigned>(value) & 15u; }
};
struct uint4 {
  using value_type = std::uint8_t;
  FIRN_HIDDEN static constexpr unsigned bits = 4;
  FIRN_HIDDEN static value_type decode(unsigned code) noexcept { return static_cast<value_type>(code); }
  FIRN_HIDDEN static unsigned encode(value_type value) noexcept { return value & 15u; }
};
struct int2 {
  using value_type = std::int8_t;
  FIRN_HIDDEN static constexpr unsigned bits = 2;
  FIRN_HIDDEN static value_type decode(unsigned code) noexcept {
    return static_cast<value_type>(static_cast<int>(code ^ 2u) - 2);
  }
  FIRN_HIDDEN static unsigned encode(value_type value) noexcept { return static_cast<unsigned>(value) & 3u; }
};
struct uint2 {
  using value_type = std::uint8_t;
  FIRN_HIDDEN static constexpr unsigned bits = 2;
  FIRN_HIDDEN static value_type decode(unsigned code) noexcept { return static_cast<value_type>(code); }
  FIRN_HIDDEN static unsigned encode(value_type value) noexcept { return value & 3u; }
};
struct float4_e2m1 {
  using value_type = float;
  using Code = detail::SmallFloatCode<2, 1, 1, detail::Specials::None>;
  FIRN_HIDDEN static constexpr unsigned bits = 4;
  FIRN_HIDDEN static value_type decode(unsigned code) noexcept { return Code::decode(code); }
  FIRN_HIDDEN static unsigned encode(value_type value) noexcept { return Code::encode(value); }
};

} // namespace rt2
} // namespace firn

#endif
