// The meaning of every elementwise op, written once as templates over a builder B: the kernel emitter's
// builder makes code, the host builder (scalar_host.h) computes at once. Values of f16 and bf16 travel as f32
// that the narrow type can represent; every op whose result may need rounding rounds to it. Bool is a one-bit
// integer. Types of 8 bits and fewer that nothing computes in can be converted alone: small floats are their
// codes, in i8, and integers of 4 and 2 bits those of 8 with their values.
//
// B has a value type V (with as many lanes as it likes) and
//   constant(like, double)  integer(like, int64)          of like's type;  bits(v)  is_known(v, double&)
//   add sub mul div rem fma neg abs sqrt floor ceil trunc round copysign   floats
//   reciprocal             within 2 ulp, where argument and result are normal numbers
//   min max (NaN wins)  min_fast max_fast (the second if either is NaN)
//   iadd isub imul idiv irem imin imax (last argument: signed)  iand ior ixor shl lshr ashr popcount integers
//   fcmp(Cmp, a, b)  icmp(Cmp, a, b, signed)  select(condition, a, b)
//   to_float(v, bits, signed)  to_int(v, bits)  to_int_saturating(v, bits, signed)   integers <-> floats
//   resize_float(v, bits)  resize_int(v, bits, signed)  bits_of(v)  float_of(v)
//   round_narrow(v, DType) f32 to the nearest f16 or bf16 value, as f32
#pragma once

#include "compiler/graph/opcode.h"
#include "compiler/graph/scalar_math.h"
#include "compiler/graph/scalar_small_float.h"

#include <string_view>
#include <utility>

namespace firn::scalar_ops {

inline bool is_narrow_float(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}

template <class B> using V = typename B::V;

// Rounds the result of an op to its dtype, if that is narrower than the computation.
template <class B> V<B> rounded(B& b, DType dtype, V<B> x) {
  return is_narrow_float(dtype) ? b.round_narrow(x, dtype) : x;
}

template <class B> V<B> logical_not(B& b, V<B> x) {
  return b.ixor(x, b.integer(x, -1));
}

// Integer power by squaring; a negative exponent gives 0 unless the base is 1 or -1.
template <class B> V<B> integer_power(B& b, V<B> base, V<B> exponent, bool is_signed) {
  V<B> one = b.integer(base, 1), zero = b.integer(base, 0);
  V<B> result = one, square = base;
  int bits = b.bits(base) - (is_signed ? 1 : 0);
  for (int i = 0; i < bits; ++i) {
    V<B> set = b.icmp(Cmp::Ne, b.iand(exponent, b.integer(base, int64_t{1} << i)), zero, false);
    result = b.select(set, b.imul(result, square), result);
    square = b.imul(square, square);
  }
  if (!is_signed) return result;
  V<B> minus_one = b.integer(base, -1);
  V<B> odd = b.icmp(Cmp::Ne, b.iand(exponent, one), zero, false);
  V<B> inverse =
      b.select(b.icmp(Cmp::Eq, base, one, true), one,
               b.select(b.icmp(Cmp::Eq, base, minus_one, true), b.select(odd, minus_one, one), zero));
  return b.select(b.icmp(Cmp::Lt, exponent, zero, true), inverse, result);
}

template <class B> V<B> float_power(B& b, V<B> x, V<B> y) {
  double exponent;
  if (b.is_known(y, exponent)) {
    if (exponent == 2) return b.mul(x, x);
    if (exponent == 3) return b.mul(b.mul(x, x), x);
    if (exponent == -1) return b.div(b.constant(x, 1), x);
    if (exponent == 1) return x;
  }
  return math::power(b, x, y);
}

// An integer of 64 bits as one that f64 holds, such that rounding it to fewer digits gives the same: beyond
// 2^53 its last bits become one, which is set if any of them is (rounding to odd).
template <class B> V<B> odd_beyond_f64(B& b, V<B> x, bool is_signed) {
  constexpr int64_t kLast = 2048, kWhole = int64_t{1} << 53;
  V<B> zero = b.integer(x, 0);
  V<B> inexact = b.icmp(Cmp::Ne, b.iand(x, b.integer(x, kLast - 1)), zero, false);
  V<B> odd = b.ior(b.iand(x, b.integer(x, -kLast)), b.select(inexact, b.integer(x, kLast), zero));
  V<B> from_lowest = is_signed ? b.iadd(x, b.integer(x, kWhole)) : x;
  V<B> is_long = b.icmp(Cmp::Gt, from_lowest, b.integer(x, is_signed ? 2 * kWhole : kWhole), false);
  return b.select(is_long, odd, x);
}

// A number as an f32 such that rounding it to fewer digits gives what rounding the number itself would.
template <class B> V<B> to_f32_unrounded(B& b, DType from, DType to, V<B> x) {
  if (from == DType::F64) return math::to_f32_by_odd(b, x);
  if (is_float(from)) return x;
  // Small floats but powers of two end long before f32 rounds whole numbers.
  bool ends_early = is_small_float(to) && to != DType::F8E8M0;
  if (b.bits(x) <= 16 || ends_early) return b.to_float(x, 32, is_signed(from));
  if (b.bits(x) == 64 && to != DType::F16) x = odd_beyond_f64(b, x, is_signed(from)); // f16 ends before
  return math::to_f32_by_odd(b, b.to_float(x, 64, is_signed(from)));
}

// The nearest integer of `to`.
template <class B> V<B> saturate_integer(B& b, DType from, DType to, V<B> x) {
  auto digits = [](DType dtype) { return bit_width(dtype) - (is_signed(dtype) ? 1 : 0); };
  auto max = [&] { return static_cast<int64_t>((uint64_t{1} << digits(to)) - 1); };
  if (digits(to) < digits(from)) x = b.imin(x, b.integer(x, max()), is_signed(from));
  if (is_signed(from) && (is_unsigned(to) || digits(to) < digits(from)))
    x = b.imax(x, b.integer(x, is_unsigned(to) ? 0 : -(int64_t{1} << digits(to))), true);
  return x;
}

// The integer part of a float, of which types of fewer bits keep the low ones. The upper half of u64's range
// is beyond i64: less 2^63, which is the top bit.
template <class B> V<B> integer_part(B& b, DType to, V<B> x) {
  int bits = bit_width(to);
  if (to != DType::U64) return b.resize_int(b.to_int(x, bits < 32 ? 32 : 64), bits, true);
  V<B> half = b.constant(x, 0x1p63);
  V<B> is_upper = b.fcmp(Cmp::Ge, x, half);
  V<B> low = b.to_int(b.select(is_upper, b.sub(x, half), x), 64);
  return b.select(is_upper, b.ior(low, b.integer(low, INT64_MIN)), low);
}

template <class B> V<B> convert(B& b, DType from, DType to, V<B> x, bool saturate);

// Integers of fewer than 8 bits travel as those of 8.
template <class B> V<B> convert_to_packed(B& b, DType from, DType to, V<B> x, bool saturate) {
  DType byte = is_signed(to) ? DType::I8 : DType::U8;
  V<B> wide = convert(b, from, byte, x, saturate);
  if (saturate) return saturate_integer(b, byte, to, wide);
  if (is_unsigned(to)) return b.iand(wide, b.integer(wide, (1 << bit_width(to)) - 1));
  V<B> spare = b.integer(wide, 8 - bit_width(to));
  return b.ashr(b.shl(wide, spare), spare);
}

template <class B> V<B> convert(B& b, DType from, DType to, V<B> x, bool saturate) {
  if (from == to) return x;
  if (is_small_float(from)) return convert(b, DType::F32, to, decode_small_float(b, from, x), saturate);
  if (is_small_float(to)) return encode_small_float(b, to, to_f32_unrounded(b, from, to, x), saturate);
  if (is_sub_byte(from)) return convert(b, is_signed(from) ? DType::I8 : DType::U8, to, x, saturate);
  if (is_sub_byte(to)) return convert_to_packed(b, from, to, x, saturate);
  bool from_float = is_float(from), to_float = is_float(to);
  int to_bits = to == DType::Bool ? 1 : to == DType::F64 ? 64 : to_float ? 32 : bit_width(to);
  if (to == DType::Bool)
    return from_float ? b.fcmp(Cmp::Ne, x, b.constant(x, 0)) : b.icmp(Cmp::Ne, x, b.integer(x, 0), false);
  if (from_float && is_narrow_float(to)) return rounded(b, to, to_f32_unrounded(b, from, to, x));
  if (from_float && to_float) return b.resize_float(x, to_bits);
  if (from_float) return saturate ? b.to_int_saturating(x, to_bits, is_signed(to)) : integer_part(b, to, x);
  bool from_signed = is_signed(from);
  if (to_float) {
    if (is_narrow_float(to)) return rounded(b, to, to_f32_unrounded(b, from, to, x));
    return b.to_float(x, to_bits, from_signed);
  }
  if (saturate && from != DType::Bool) x = saturate_integer(b, from, to, x);
  return b.resize_int(x, to_bits, from_signed);
}

template <class B> V<B> sign_of(B& b, DType dtype, V<B> x) {
  if (is_float(dtype)) {
    V<B> unit = b.copysign(b.constant(x, 1), x);
    V<B> nonzero = b.fcmp(Cmp::Ne, b.abs(x), b.constant(x, 0));
    V<B> is_number = b.fcmp(Cmp::Eq, x, x);
    return b.select(b.select(nonzero, is_number, nonzero), unit, x);
  }
  V<B> zero = b.integer(x, 0), one = b.integer(x, 1);
  V<B> positive = b.select(b.icmp(Cmp::Ne, x, zero, false), one, zero);
  if (!is_signed(dtype)) return positive;
  return b.select(b.icmp(Cmp::Lt, x, zero, true), b.integer(x, -1), positive);
}

template <class B> V<B> float_unary(B& b, Opcode opcode, V<B> x) {
  switch (opcode) {
  case Opcode::Abs: return b.abs(x);
  case Opcode::Acos: return math::acos(b, x);
  case Opcode::Acosh: return math::acosh(b, x);
  case Opcode::Asin: return math::asin(b, x);
  case Opcode::Asinh: return math::asinh(b, x);
  case Opcode::Atan: return math::atan(b, x);
  case Opcode::Atanh: return math::atanh(b, x);
  case Opcode::Ceil: return b.ceil(x);
  case Opcode::Cosh: return math::cosh(b, x);
  case Opcode::Cosine: return math::cos(b, x);
  case Opcode::Erf: return math::erf(b, x);
  case Opcode::Exponential: return math::exp(b, x);
  case Opcode::ExponentialMinusOne: return math::expm1(b, x);
  case Opcode::Floor: return b.floor(x);
  case Opcode::IsInf: return b.fcmp(Cmp::Eq, b.abs(x), b.constant(x, math::kInfinity));
  case Opcode::IsNaN: return b.fcmp(Cmp::Ne, x, x);
  case Opcode::Log: return math::log(b, x);
  case Opcode::LogPlusOne: return math::log1p(b, x);
  case Opcode::Logistic: return math::logistic(b, x);
  case Opcode::Negate: return b.neg(x);
  case Opcode::RoundNearestEven: return b.round(x);
  case Opcode::Rsqrt: return b.div(b.constant(x, 1), b.sqrt(x));
  case Opcode::Sign: return sign_of(b, DType::F32, x);
  case Opcode::Sine: return math::sin(b, x);
  case Opcode::Sinh: return math::sinh(b, x);
  case Opcode::Sqrt: return b.sqrt(x);
  case Opcode::StopGradient: return x;
  case Opcode::Tan: return math::tan(b, x);
  case Opcode::Tanh: return math::tanh(b, x);
  default: FIRN_UNREACHABLE("no meaning for " + std::string(opcode_name(opcode)) + " of floats");
  }
}

template <class B> V<B> integer_unary(B& b, Opcode opcode, DType dtype, V<B> x) {
  if (has_trait(opcode, RoundsToInteger) || opcode == Opcode::StopGradient) return x;
  switch (opcode) {
  case Opcode::Abs: return is_signed(dtype) ? b.imax(x, b.isub(b.integer(x, 0), x), true) : x;
  case Opcode::CountOnes: return b.popcount(x);
  case Opcode::Negate: return b.isub(b.integer(x, 0), x);
  case Opcode::Not: return logical_not(b, x);
  case Opcode::Sign: return sign_of(b, dtype, x);
  case Opcode::IsInf:
  case Opcode::IsNaN: return b.icmp(Cmp::Ne, x, x, false);
  default: FIRN_UNREACHABLE("no meaning for " + std::string(opcode_name(opcode)) + " of integers");
  }
}

template <class B> V<B> unary(B& b, Opcode opcode, DType dtype, V<B> x) {
  if (!is_float(dtype)) return integer_unary(b, opcode, dtype, x);
  V<B> result = float_unary(b, opcode, x);
  return has_trait(opcode, Exact) ? result : rounded(b, dtype, result);
}

template <class B> V<B> float_binary(B& b, Opcode opcode, V<B> x, V<B> y) {
  switch (opcode) {
  case Opcode::Add: return b.add(x, y);
  case Opcode::Atan2: return math::atan2(b, x, y);
  case Opcode::Divide: return b.div(x, y);
  case Opcode::Maximum: return b.max(x, y);
  case Opcode::Minimum: return b.min(x, y);
  case Opcode::Multiply: return b.mul(x, y);
  case Opcode::Power: return float_power(b, x, y);
  case Opcode::Remainder: return b.rem(x, y);
  case Opcode::Subtract: return b.sub(x, y);
  default: FIRN_UNREACHABLE("no meaning for " + std::string(opcode_name(opcode)) + " of floats");
  }
}

template <class B> V<B> bool_binary(B& b, Opcode opcode, V<B> x, V<B> y) {
  switch (opcode) {
  case Opcode::And:
  case Opcode::Multiply:
  case Opcode::Minimum: return b.iand(x, y);
  case Opcode::Or:
  case Opcode::Add:
  case Opcode::Maximum: return b.ior(x, y);
  case Opcode::Xor:
  case Opcode::Subtract: return b.ixor(x, y);
  default: FIRN_UNREACHABLE("no meaning for " + std::string(opcode_name(opcode)) + " of bools");
  }
}

template <class B> V<B> integer_binary(B& b, Opcode opcode, DType dtype, V<B> x, V<B> y) {
  bool sgn = is_signed(dtype);
  switch (opcode) {
  case Opcode::Add: return b.iadd(x, y);
  case Opcode::And: return b.iand(x, y);
  case Opcode::Divide: return b.idiv(x, y, sgn);
  case Opcode::Maximum: return b.imax(x, y, sgn);
  case Opcode::Minimum: return b.imin(x, y, sgn);
  case Opcode::Multiply: return b.imul(x, y);
  case Opcode::Or: return b.ior(x, y);
  case Opcode::Power: return integer_power(b, x, y, sgn);
  case Opcode::Remainder: return b.irem(x, y, sgn);
  case Opcode::ShiftLeft: return b.shl(x, y);
  case Opcode::ShiftRight: return sgn ? b.ashr(x, y) : b.lshr(x, y);
  case Opcode::Subtract: return b.isub(x, y);
  case Opcode::Xor: return b.ixor(x, y);
  default: FIRN_UNREACHABLE("no meaning for " + std::string(opcode_name(opcode)) + " of integers");
  }
}

template <class B> V<B> binary(B& b, Opcode opcode, DType dtype, V<B> x, V<B> y) {
  if (dtype == DType::Bool) return bool_binary(b, opcode, x, y);
  if (!is_float(dtype)) return integer_binary(b, opcode, dtype, x, y);
  V<B> result = float_binary(b, opcode, x, y);
  return has_trait(opcode, Exact) ? result : rounded(b, dtype, result);
}

inline Cmp comparison(std::string_view direction) {
  static constexpr std::pair<std::string_view, Cmp> kNames[] = {
      {"eq", Cmp::Eq}, {"ne", Cmp::Ne}, {"lt", Cmp::Lt}, {"le", Cmp::Le}, {"gt", Cmp::Gt}, {"ge", Cmp::Ge}};
  for (auto [name, cmp] : kNames)
    if (direction == name) return cmp;
  FIRN_UNREACHABLE("compare direction " + std::string(direction));
}

template <class B> V<B> compare(B& b, std::string_view direction, DType dtype, V<B> x, V<B> y) {
  Cmp cmp = comparison(direction);
  return is_float(dtype) ? b.fcmp(cmp, x, y) : b.icmp(cmp, x, y, is_signed(dtype));
}

template <class B> V<B> clamp(B& b, DType dtype, V<B> low, V<B> x, V<B> high) {
  if (is_float(dtype)) return b.min(b.max(x, low), high);
  return b.imin(b.imax(x, low, is_signed(dtype)), high, is_signed(dtype));
}

} // namespace firn::scalar_ops
