// Conversions to narrow floats against a search for the nearest value among all that the format has.
#include "compiler/graph/literal.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

namespace firn {
namespace {

// A format as its standard describes it, decoded independently of the library.
struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity; // the top exponent is infinity and NaN
  int width() const { return 1 + exponent_bits + mantissa_bits; }
};

const Format kFormats[] = {
    {DType::F8E4M3FN, 4, 3, 7, false}, {DType::F8E4M3FNUZ, 4, 3, 8, false},
    {DType::F8E5M2, 5, 2, 15, true},   {DType::F8E5M2FNUZ, 5, 2, 16, false},
    {DType::F4E2M1, 2, 1, 1, false},
};

bool is_nan_pattern(const Format& format, unsigned bits) {
  unsigned sign = 1u << (format.width() - 1), magnitude = bits & (sign - 1);
  switch (format.dtype) {
  case DType::F8E4M3FN: return magnitude == 0x7f;
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2FNUZ: return bits == sign;
  case DType::F8E5M2: return magnitude > 0x7c;
  default: return false;
  }
}

double value_of(const Format& format, unsigned bits) {
  unsigned sign = bits >> (format.width() - 1),
           exponent = bits >> format.mantissa_bits & ((1u << format.exponent_bits) - 1);
  unsigned mantissa = bits & ((1u << format.mantissa_bits) - 1);
  if (is_nan_pattern(format, bits)) return NAN;
  double magnitude = exponent == 0 ? mantissa * std::pow(2.0, 1 - format.bias - format.mantissa_bits)
                                   : (1 + mantissa / std::pow(2.0, format.mantissa_bits)) *
                                         std::pow(2.0, static_cast<int>(exponent) - format.bias);
  if (format.has_infinity && exponent == (1u << format.exponent_bits) - 1) magnitude = INFINITY;
  return sign ? -magnitude : magnitude;
}

// The nearest finite value's magnitude bits, ties to even, by search; one past the largest when it rounds
// beyond it.
unsigned nearest_magnitude(const Format& format, double magnitude) {
  unsigned count = 1u << (format.width() - 1), best = 0;
  double best_distance = INFINITY, largest = 0, last_step = 0;
  for (unsigned bits = 0; bits < count; ++bits) {
    double value = value_of(format, bits);
    if (!std::isfinite(value)) break;
    last_step = value - largest;
    largest = value;
    double distance = std::fabs(value - magnitude);
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) {
      best = bits;
      best_distance = distance;
    }
  }
  // The value that would follow the largest, for the tie between them.
  double next = largest + last_step;
  if (magnitude > largest && next - magnitude < magnitude - largest) return best + 1;
  if (magnitude > largest && next - magnitude == magnitude - largest && best % 2 == 1) return best + 1;
  return best;
}

unsigned expected_bits(const Format& format, double value, bool saturate) {
  unsigned sign = std::signbit(value) ? 1u << (format.width() - 1) : 0;
  unsigned magnitude = std::isinf(value) ? ~0u : nearest_magnitude(format, std::min(std::fabs(value), 1e6));
  unsigned largest = 0;
  while (std::isfinite(value_of(format, largest + 1)) && largest + 1 < 1u << (format.width() - 1)) ++largest;
  bool no_negative_zero = format.dtype == DType::F8E4M3FNUZ || format.dtype == DType::F8E5M2FNUZ;
  if (magnitude > largest) {
    if (saturate || format.dtype == DType::F4E2M1) return sign | largest;
    if (format.has_infinity) return sign | 0x7c;
    return no_negative_zero ? 0x80 : sign | 0x7f;
  }
  return magnitude == 0 && no_negative_zero ? 0 : sign | magnitude;
}

std::vector<double> samples(const Format& format) {
  std::vector<double> values = {0.0,    -0.0, INFINITY, -INFINITY, 1e-30, -1e-30, 1e30,
                                3.4e38, 480,  464,      463.9,     61440, 61439,  65536};
  for (unsigned bits = 0; bits < 1u << format.width(); ++bits) {
    double value = value_of(format, bits), next = value_of(format, bits + 1);
    if (!std::isfinite(value)) continue;
    values.push_back(value);
    if (!std::isfinite(next)) continue;
    double middle = (value + next) / 2;
    for (double near : {middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)})
      values.push_back(near);
  }
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-20, 20);
  for (int i = 0; i < 2000; ++i) values.push_back((i % 2 ? 1 : -1) * std::exp2(exponent(random)));
  return values;
}

TEST_CASE("8- and 4-bit floats decode as their standards say") {
  for (const Format& format : kFormats)
    for (unsigned bits = 0; bits < 1u << format.width(); ++bits) {
      double wanted = value_of(format, bits);
      float found = float8_to_float(format.dtype, static_cast<uint8_t>(bits));
      INFO(dtype_name(format.dtype) << " " << bits);
      if (std::isnan(wanted))
        CHECK(std::isnan(found));
      else
        CHECK((found == wanted && std::signbit(found) == std::signbit(wanted)));
    }
}

TEST_CASE("8- and 4-bit floats round to nearest even") {
  for (const Format& format : kFormats)
    for (bool saturate : {false, true})
      for (double value : samples(format)) {
        INFO(dtype_name(format.dtype) << " " << value << (saturate ? " saturating" : ""));
        REQUIRE(static_cast<unsigned>(double_to_float8(format.dtype, value, saturate)) ==
                expected_bits(format, value, saturate));
      }
}

TEST_CASE("NaN stays NaN where the format has one") {
  for (const Format& format : kFormats) {
    uint8_t bits = float_to_float8(format.dtype, NAN, /*saturate=*/true);
    if (format.dtype != DType::F4E2M1) CHECK(is_nan_pattern(format, bits));
  }
  CHECK(float_to_float8(DType::F8E8M0, NAN, true) == 255);
  CHECK(float_to_float8(DType::F4E2M1, NAN, true) == 0x8);
  CHECK(float_to_float8(DType::F4E2M1, -NAN, true) == 0x0);
}

TEST_CASE("f8e8m0 holds powers of two") {
  for (int bits = 0; bits < 255; ++bits) {
    float value = float8_to_float(DType::F8E8M0, static_cast<uint8_t>(bits));
    CHECK(static_cast<double>(value) == std::ldexp(1.0, bits - 127));
    CHECK(float_to_float8(DType::F8E8M0, value, false) == bits);
  }
  CHECK(std::isnan(float8_to_float(DType::F8E8M0, 255)));
  CHECK(float_to_float8(DType::F8E8M0, 1.5f, false) == 128);
  CHECK(float_to_float8(DType::F8E8M0, 1.49f, false) == 127);
  CHECK(float_to_float8(DType::F8E8M0, INFINITY, false) == 255);
  CHECK(float_to_float8(DType::F8E8M0, INFINITY, true) == 254);
  CHECK(float_to_float8(DType::F8E8M0, -1.0f, true) == 255);
}

TEST_CASE("every half survives the way through float") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    float value = half_to_float(static_cast<uint16_t>(bits));
    bool nan = (bits & 0x7fff) > 0x7c00;
    REQUIRE(std::isnan(value) == nan);
    if (!nan) REQUIRE(float_to_half(value) == bits);
  }
  CHECK(half_to_float(0x0001) == std::ldexp(1.0f, -24));
  CHECK(half_to_float(0x03ff) == 1023 * std::ldexp(1.0f, -24));
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0xfc00) == -INFINITY);
}

TEST_CASE("half rounds to nearest even, from its neighbours' middles") {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    double low = half_to_float(static_cast<uint16_t>(bits)),
           high = half_to_float(static_cast<uint16_t>(bits + 1));
    double middle = (low + high) / 2;
    REQUIRE(double_to_half(middle) == (bits % 2 ? bits + 1 : bits));
    REQUIRE(double_to_half(std::nextafter(middle, 0)) == bits);
    REQUIRE(double_to_half(-std::nextafter(middle, INFINITY)) == (0x8000 | (bits + 1)));
  }
  CHECK(double_to_half(65519.999) == 0x7bff);
  CHECK(double_to_half(65520) == 0x7c00);
  CHECK(double_to_half(-1e300) == 0xfc00);
  CHECK((float_to_half(NAN) & 0x7fff) > 0x7c00);
}

TEST_CASE("bfloat16 rounds to nearest even") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    float value = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      REQUIRE(std::isnan(bfloat16_to_float(float_to_bfloat16(value))));
    else
      REQUIRE(float_to_bfloat16(value) == bits);
  }
  for (unsigned bits = 0; bits < 0x7f7f; bits += 7) {
    double low = bfloat16_to_float(static_cast<uint16_t>(bits)),
           high = bfloat16_to_float(static_cast<uint16_t>(bits + 1));
    auto middle = static_cast<float>((low + high) / 2);
    REQUIRE(float_to_bfloat16(middle) == (bits % 2 ? bits + 1 : bits));
    REQUIRE(float_to_bfloat16(std::nextafter(middle, 0.0f)) == bits);
    REQUIRE(float_to_bfloat16(std::nextafter(middle, INFINITY)) == bits + 1);
  }
  CHECK(float_to_bfloat16(3.4028235e38f) == 0x7f80);
}

TEST_CASE("f64 to narrow floats rounds once") {
  // Just above the middle of two neighbours, by less than f32 can say: rounding through f32 would go to even,
  // down.
  Literal half(DType::F16, {1}), brain(DType::BF16, {1}), eight(DType::F8E5M2, {1});
  half.set_double(0, 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40));
  brain.set_double(0, 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40));
  eight.set_double(0, 1 + std::ldexp(1.0, -3) + std::ldexp(1.0, -40));
  CHECK(half.get_double(0) == 1 + std::ldexp(1.0, -10));
  CHECK(brain.get_double(0) == 1 + std::ldexp(1.0, -7));
  CHECK(eight.get_double(0) == 1.25);
}

} // namespace
} // namespace firn
