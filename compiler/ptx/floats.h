// Floating-point numbers of PTX: formats narrower than f32, and rounding in every direction.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace firn::ptx {

enum class Rounding : uint8_t { Nearest, NearestAway, Zero, Down, Up };

// A binary format with subnormal numbers.
struct Format {
  int mantissa; // stored bits
  int exponent; // bits
  bool has_infinity = true;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
constexpr Format kF16{10, 5}, kBF16{7, 8}, kTF32{10, 8}, kF32{23, 8}, kE5M2{2, 5}, kE4M3{3, 4, false};

// The bits of a number in a format. Overflow gives infinity or, if `saturate` is set or the direction asks
// for it, the largest finite number. NaN is the canonical one, all ones but the sign.
uint32_t narrow(double value, const Format& format, Rounding rounding = Rounding::Nearest,
                bool saturate = false);
double widen(uint32_t bits, const Format& format);

// a * b + c with at most one rounding when the result is narrowed to 40 bits or fewer: what double cannot
// hold is kept as an odd last bit. Factors have at most 24 bits each.
double multiply_add_odd(double a, double b, double c);

// A number of a 16-bit format, computed with in double.
template <const Format& format> struct Narrow { uint16_t bits; };
using Half = Narrow<kF16>;
using BFloat = Narrow<kBF16>;

// How the 64 bits of a lane's register hold a value of a type; bits above those of the type are ignored.
template <class T> struct Bits {
  static T from(uint64_t bits) { return static_cast<T>(bits); }
  static uint64_t to(T value) { return static_cast<uint64_t>(value); }
};
template <> struct Bits<float> {
  static float from(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  // Arithmetic on f32 makes one NaN only.
  static uint64_t to(float value) { return value != value ? 0x7fffffffu : std::bit_cast<uint32_t>(value); }
};
template <> struct Bits<double> {
  static double from(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t to(double value) { return std::bit_cast<uint64_t>(value); }
};

// Rounds the host's arithmetic in a direction while it lives.
class RoundingScope {
public:
  explicit RoundingScope(Rounding rounding);
  ~RoundingScope();
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

private:
  bool is_changed_;
};

} // namespace firn::ptx
