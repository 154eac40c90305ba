// Floats of 8 and 4 bits between their codes and f32, by arithmetic on bits: templates over a builder like
// those of scalar_ops.h. Nothing computes in these formats, so that values of them travel as codes, in bytes,
// which movement passes on untouched. The evaluator has its own conversions (narrow_float.cpp).
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/graph/scalar_math.h"

namespace firn::scalar_ops {

// A format with sign, exponent and mantissa; `specials` says how the largest codes are spent.
struct SmallFloatFormat {
  enum class Specials {
    Ieee,            // an exponent of ones: infinity, or NaN
    NanOnly,         // all ones is NaN, there is no infinity
    NegativeZeroNan, // the code of -0 is NaN; neither infinity nor -0
    None // every code is a number; NaN becomes a zero of the other sign, as ONNX's reference has it
  };
  int exponent_bits, mantissa_bits, bias;
  Specials specials;

  int64_t sign() const { return int64_t{1} << (exponent_bits + mantissa_bits); }
  int64_t infinity() const { return sign() - (int64_t{1} << mantissa_bits); } // an exponent of ones
  int64_t largest() const {
    return specials == Specials::Ieee      ? infinity() - 1
           : specials == Specials::NanOnly ? sign() - 2
                                           : sign() - 1;
  }
  // The codes, without sign, of a NaN and of a number beyond the largest that does not saturate.
  int64_t nan() const {
    if (specials == Specials::Ieee) return infinity() | int64_t{1} << (mantissa_bits - 1);
    return specials == Specials::NanOnly ? sign() - 1 : specials == Specials::NegativeZeroNan ? sign() : 0;
  }
  int64_t overflow() const {
    return specials == Specials::Ieee ? infinity() : specials == Specials::None ? largest() : nan();
  }
};

// Not for F8E8M0, which has neither sign nor mantissa.
inline SmallFloatFormat small_float_format(DType dtype) {
  using Specials = SmallFloatFormat::Specials;
  switch (dtype) {
  case DType::F8E4M3FN: return {4, 3, 7, Specials::NanOnly};
  case DType::F8E4M3FNUZ: return {4, 3, 8, Specials::NegativeZeroNan};
  case DType::F8E5M2: return {5, 2, 15, Specials::Ieee};
  case DType::F8E5M2FNUZ: return {5, 2, 16, Specials::NegativeZeroNan};
  default: return {2, 1, 1, Specials::None};
  }
}

inline constexpr int64_t kF32Infinity = 0x7f800000, kF32Nan = 0x7fc00000;

// 2^(code - 127); 255 is NaN.
template <class B> typename B::V decode_power(B& b, typename B::V code) {
  auto bits = b.resize_int(code, 32, false);
  auto min = b.integer(bits, 0x00400000), nan = b.integer(bits, kF32Nan);
  auto power = b.shl(bits, b.integer(bits, 23));
  power = b.select(b.icmp(Cmp::Eq, bits, b.integer(bits, 0), false), min, power);
  return b.float_of(b.select(b.icmp(Cmp::Eq, bits, b.integer(bits, 255), false), nan, power));
}

// The nearest power of two, ties upwards. Negative numbers have none.
template <class B> typename B::V encode_power(B& b, typename B::V x, bool saturate) {
  auto bits = b.bits_of(x);
  auto magnitude = b.iand(bits, b.integer(bits, 0x7fffffff));
  auto rounded = b.lshr(b.iadd(magnitude, b.integer(bits, 0x400000)), b.integer(bits, 23));
  // Numbers below 2^-126 have no exponent of their own.
  auto tiny = b.select(b.icmp(Cmp::Ge, magnitude, b.integer(bits, 0x600000), false), b.integer(bits, 1),
                       b.integer(bits, 0));
  auto code = b.select(b.icmp(Cmp::Lt, magnitude, b.integer(bits, 0x800000), false), tiny, rounded);
  if (saturate) code = b.imin(code, b.integer(bits, 254), false);
  auto is_power = b.fcmp(Cmp::Ge, x, b.constant(x, 0)); // false for NaN
  return b.resize_int(b.select(is_power, code, b.integer(bits, 255)), 8, false);
}

// An i8 code as f32.
template <class B> typename B::V decode_small_float(B& b, DType dtype, typename B::V code) {
  if (dtype == DType::F8E8M0) return decode_power(b, code);
  using Specials = SmallFloatFormat::Specials;
  const SmallFloatFormat format = small_float_format(dtype);
  auto all = b.resize_int(code, 32, false);
  auto number = [&](int64_t value) { return b.integer(all, value); };
  auto magnitude = b.iand(all, number(format.sign() - 1));
  auto sign =
      b.shl(b.iand(all, number(format.sign())), number(31 - format.exponent_bits - format.mantissa_bits));
  auto moved = b.shl(magnitude, number(23 - format.mantissa_bits));
  auto normal = b.iadd(moved, number(int64_t{127 - format.bias} << 23));
  // Subnormals normalise as the mantissa of the smallest normal number, which is then subtracted.
  auto min = number(int64_t{128 - format.bias} << 23);
  auto subnormal = b.bits_of(b.sub(b.float_of(b.ior(moved, min)), b.float_of(min)));
  auto is_subnormal = b.icmp(Cmp::Lt, magnitude, number(int64_t{1} << format.mantissa_bits), false);
  auto bits = b.select(is_subnormal, subnormal, normal);
  if (format.specials == Specials::Ieee) {
    auto is_infinite = b.icmp(Cmp::Eq, magnitude, number(format.infinity()), false);
    bits = b.select(is_infinite, number(kF32Infinity), bits);
    auto is_nan = b.icmp(Cmp::Gt, magnitude, number(format.infinity()), false);
    bits = b.select(is_nan, number(kF32Nan), bits);
  } else if (format.specials == Specials::NanOnly) {
    bits = b.select(b.icmp(Cmp::Eq, magnitude, number(format.nan()), false), number(kF32Nan), bits);
  } else if (format.specials == Specials::NegativeZeroNan) {
    bits = b.select(b.icmp(Cmp::Eq, all, number(format.nan()), false), number(kF32Nan), bits);
  }
  return b.float_of(b.ior(bits, sign));
}

// The code, i8, of the number nearest to an f32, ties to even. What is beyond the largest becomes infinity or
// NaN, or the largest if it saturates, as infinity does too.
template <class B> typename B::V encode_small_float(B& b, DType dtype, typename B::V x, bool saturate) {
  if (dtype == DType::F8E8M0) return encode_power(b, x, saturate);
  using Specials = SmallFloatFormat::Specials;
  const SmallFloatFormat format = small_float_format(dtype);
  const int dropped = 23 - format.mantissa_bits;
  auto all = b.bits_of(x);
  auto number = [&](int64_t value) { return b.integer(all, value); };
  auto magnitude = b.iand(all, number(0x7fffffff));
  auto sign = b.lshr(b.ixor(all, magnitude), number(31 - format.exponent_bits - format.mantissa_bits));
  // Half a step less one, plus the last bit that is kept, carries upwards where rounding does.
  auto odd = b.iand(b.lshr(magnitude, number(dropped)), number(1));
  auto rebased =
      b.iadd(magnitude, number((int64_t{1} << (dropped - 1)) - 1 - (int64_t{127 - format.bias} << 23)));
  auto normal = b.lshr(b.iadd(rebased, odd), number(dropped));
  // Beside a number whose last bit is worth the smallest subnormal, the addition itself rounds.
  auto beside = number(int64_t{128 - format.bias + dropped} << 23);
  auto sum = b.add(b.float_of(magnitude), b.float_of(beside));
  auto subnormal = b.isub(b.bits_of(sum), beside);
  auto is_subnormal = b.icmp(Cmp::Lt, magnitude, number(int64_t{128 - format.bias} << 23), false);
  auto code = b.select(is_subnormal, subnormal, normal);
  auto is_beyond = b.icmp(Cmp::Gt, code, number(format.largest()), false);
  code = b.select(is_beyond, number(saturate ? format.largest() : format.overflow()), code);
  code = b.select(b.icmp(Cmp::Gt, magnitude, number(kF32Infinity), false), number(format.nan()), code);
  if (format.specials == Specials::NegativeZeroNan) {
    // Zero has no sign, and the code of NaN holds it already.
    auto keeps_sign = b.icmp(Cmp::Ne, code, number(0), false);
    sign = b.select(keeps_sign, sign, number(0));
  } else if (format.specials == Specials::None) {
    auto is_nan = b.icmp(Cmp::Gt, magnitude, number(kF32Infinity), false);
    sign = b.ixor(sign, b.select(is_nan, number(format.sign()), number(0)));
  }
  return b.resize_int(b.ior(code, sign), 8, false);
}

} // namespace firn::scalar_ops
