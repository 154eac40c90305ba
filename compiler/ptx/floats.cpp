// Conversions to and from narrow formats by integers scaled to the last place.
#include "compiler/ptx/floats.h"

#include <algorithm>
#include <cfenv>

namespace firn::ptx {
namespace {

// A non-negative number that is cut to an integer by a rule of rounding.
uint64_t round_magnitude(double scaled, bool negative, Rounding rounding) {
  auto below = static_cast<uint64_t>(scaled);
  double rest = scaled - static_cast<double>(below);
  switch (rounding) {
  case Rounding::Nearest: return below + (rest > 0.5 || (rest == 0.5 && (below & 1)));
  case Rounding::NearestAway: return below + (rest >= 0.5);
  case Rounding::Zero: return below;
  case Rounding::Down: return below + (negative && rest > 0);
  case Rounding::Up: return below + (!negative && rest > 0);
  }
  return below;
}

bool overflows_to_infinity(bool negative, Rounding rounding) {
  return rounding == Rounding::Nearest || rounding == Rounding::NearestAway ||
         (rounding == Rounding::Up && !negative) || (rounding == Rounding::Down && negative);
}

} // namespace

uint32_t narrow(double value, const Format& format, Rounding rounding, bool saturate) {
  int m = format.mantissa;
  uint32_t sign_bit = 1u << (m + format.exponent);
  if (std::isnan(value)) return sign_bit - 1;
  bool negative = std::signbit(value);
  uint32_t sign = negative ? sign_bit : 0;
  uint32_t infinity = ((1u << format.exponent) - 1) << m;
  uint32_t largest = format.has_infinity ? infinity - 1 : sign_bit - 2;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude))
    return sign | (saturate ? largest : format.has_infinity ? infinity : sign_bit - 1);
  int smallest = 1 - format.bias();
  int exponent = std::max(std::ilogb(magnitude), smallest);
  uint64_t digits = round_magnitude(std::ldexp(magnitude, m - exponent), negative, rounding);
  int64_t bits = static_cast<int64_t>(digits) + (static_cast<int64_t>(exponent - smallest) << m);
  if (bits <= static_cast<int64_t>(largest)) return sign | static_cast<uint32_t>(bits);
  if (saturate || !overflows_to_infinity(negative, rounding)) return sign | largest;
  return sign | (format.has_infinity ? infinity : sign_bit - 1);
}

double widen(uint32_t bits, const Format& format) {
  int m = format.mantissa;
  uint32_t sign_bit = 1u << (m + format.exponent);
  uint32_t magnitude = bits & (sign_bit - 1);
  uint32_t infinity = ((1u << format.exponent) - 1) << m;
  double value;
  if (format.has_infinity ? magnitude > infinity : magnitude == sign_bit - 1)
    value = NAN;
  else if (format.has_infinity && magnitude == infinity)
    value = INFINITY;
  else if (magnitude >> m == 0)
    value = std::ldexp(magnitude, 1 - format.bias() - m);
  else
    value = std::ldexp((magnitude & ((1u << m) - 1)) | (1u << m),
                       static_cast<int>(magnitude >> m) - format.bias() - m);
  return bits & sign_bit ? -value : value;
}

double multiply_add_odd(double a, double b, double c) {
  double product = a * b; // exact
  double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  double part = sum - product;
  double error = (product - (sum - part)) + (c - part);
  if (error == 0) return sum;
  auto bits = std::bit_cast<uint64_t>(sum);
  if (bits & 1) return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

RoundingScope::RoundingScope(Rounding rounding)
    : is_changed_(rounding != Rounding::Nearest && rounding != Rounding::NearestAway) {
  if (!is_changed_) return;
  std::fesetround(rounding == Rounding::Zero ? FE_TOWARDZERO
                  : rounding == Rounding::Up ? FE_UPWARD
                                             : FE_DOWNWARD);
}

RoundingScope::~RoundingScope() {
  if (is_changed_) std::fesetround(FE_TONEAREST);
}

} // namespace firn::ptx
