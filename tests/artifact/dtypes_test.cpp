// Storage types for small floats: every code converts to float and back, and rounding is to nearest even.
#include "firn/dtypes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace {

template <class T> void check_round_trip(unsigned codes) {
  for (unsigned code = 0; code < codes; ++code) {
    T value;
    value.bits = static_cast<decltype(value.bits)>(code);
    const float wide = value;
    if (std::isnan(wide)) {
      CHECK(std::isnan(static_cast<float>(T(wide))));
    } else if (std::isinf(wide) && T(wide).bits != value.bits) {
      CHECK(std::is_same_v<T, firn::float8_e5m2>); // infinities saturate
    } else {
      CHECK(T(wide).bits == value.bits);
    }
  }
}

// The value of a code computed from the definition of the format.
float expected(unsigned code, int mantissa_bits, int exponent_bits, int bias) {
  const unsigned mantissa = code & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
  const float fraction = std::ldexp(static_cast<float>(mantissa), -mantissa_bits);
  const float magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0f + fraction, exponent - bias);
  return (code >> (mantissa_bits + exponent_bits) & 1) != 0 ? -magnitude : magnitude;
}

// T's nearest value by search over all codes; ties go to the even code.
template <class T> void check_nearest(float value, unsigned codes) {
  float best = std::numeric_limits<float>::infinity();
  unsigned best_code = 0;
  for (unsigned code = 0; code < codes; ++code) {
    T candidate;
    candidate.bits = static_cast<decltype(candidate.bits)>(code);
    const float wide = candidate;
    if (!std::isfinite(wide)) continue;
    const float distance = std::fabs(wide - value);
    if (distance < best || (distance == best && code % 2 == 0 && wide != static_cast<float>(T(0.0f)))) {
      best = distance;
      best_code = code;
    }
  }
  T wanted;
  wanted.bits = static_cast<decltype(wanted.bits)>(best_code);
  INFO(value);
  CHECK(static_cast<float>(T(value)) == static_cast<float>(wanted));
}

} // namespace

TEST_CASE("every code survives the way through float") {
  check_round_trip<firn::half>(65536);
  check_round_trip<firn::bfloat16>(65536);
  check_round_trip<firn::float8_e4m3fn>(256);
  check_round_trip<firn::float8_e4m3fnuz>(256);
  check_round_trip<firn::float8_e5m2>(256);
  check_round_trip<firn::float8_e5m2fnuz>(256);
  check_round_trip<firn::float8_e8m0>(256);
}

TEST_CASE("codes mean what their formats define") {
  for (unsigned code = 0; code < 0x7c00; ++code) {
    firn::half value;
    value.bits = static_cast<std::uint16_t>(code);
    REQUIRE(static_cast<float>(value) == expected(code, 10, 5, 15));
  }
  for (unsigned code = 0; code < 0x7f; ++code) {
    firn::float8_e4m3fn fn;
    fn.bits = static_cast<std::uint8_t>(code);
    CHECK(static_cast<float>(fn) == expected(code, 3, 4, 7));
    firn::float8_e4m3fnuz fnuz;
    fnuz.bits = static_cast<std::uint8_t>(code);
    CHECK(static_cast<float>(fnuz) == expected(code, 3, 4, 8));
  }
  for (unsigned code = 0; code < 16; ++code)
    CHECK(firn::float4_e2m1::decode(code) == expected(code, 1, 2, 1));
}

TEST_CASE("rounding is to nearest, ties to even") {
  for (float value = -20.0f; value < 20.0f; value += 0.0390625f) {
    check_nearest<firn::float8_e4m3fn>(value, 256);
    check_nearest<firn::float8_e5m2>(value, 256);
    check_nearest<firn::float8_e4m3fnuz>(value, 256);
  }
  CHECK(firn::half(65519.0f).bits == 0x7bff);
  CHECK(firn::half(65520.0f).bits == 0x7c00);
  CHECK(firn::half(5.9604645e-8f).bits == 1);
  CHECK(firn::half(2.9802322e-8f).bits == 0);
  CHECK(firn::half(2.9802326e-8f).bits == 1);
  CHECK(firn::bfloat16(1.00390625f).bits == 0x3f80);
  CHECK(firn::bfloat16(1.01171875f).bits == 0x3f82);
  CHECK(firn::bfloat16(1e-40f).bits == 1);
}

TEST_CASE("infinities, overflow and NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(firn::half(-infinity).bits == 0xfc00);
  CHECK(static_cast<float>(firn::float8_e4m3fn(1000.0f)) == 448.0f);
  CHECK(static_cast<float>(firn::float8_e4m3fn(-infinity)) == -448.0f);
  CHECK(static_cast<float>(firn::float8_e5m2(infinity)) == 57344.0f);
  CHECK(static_cast<float>(firn::float8_e4m3fnuz(infinity)) == 240.0f);
  CHECK(firn::float8_e4m3fnuz(nan).bits == 0x80);
  CHECK(firn::float8_e4m3fnuz(-0.0f).bits == 0);
  CHECK(firn::float8_e8m0(3.0f).bits == 129);
  CHECK(firn::float8_e8m0(nan).bits == 255);
  CHECK(std::isnan(static_cast<float>(firn::float8_e4m3fn(nan))));
}
