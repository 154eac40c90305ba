// Our own exp, log, tanh, erf and their like as templates over the builder of scalar_ops.h: straight code
// without branches, tables or library calls, for f32 and f64. f32 is within 4 ulp over its whole range,
// denormals, infinities and NaN included (but see logistic); f64 is good to about 1e-15. Polynomials are
// Chebyshev interpolants on the reduced range; lists of coefficients begin with the lowest power.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/support/diagnostic.h"

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

namespace firn::scalar_ops {

enum class Cmp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

namespace math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kPi = 3.14159265358979323846;

template <class B> using V = typename B::V;

template <class B> bool is_double(B& b, V<B> x) {
  return b.bits(x) == 64;
}

template <class B, size_t N> V<B> polynomial(B& b, V<B> x, const double (&coefficients)[N]) {
  V<B> sum = b.constant(x, coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = b.fma(sum, x, b.constant(x, coefficients[i]));
  return sum;
}

// x + x^3 tail(x^2).
template <class B, size_t N> V<B> odd_function(B& b, V<B> x, const double (&tail)[N]) {
  V<B> square = b.mul(x, x);
  return b.fma(b.mul(x, square), polynomial(b, square, tail), x);
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2.
template <class B> V<B> exp_tail(B& b, V<B> r) {
  static constexpr double kFloat[] = {0.50000000135747191,   0.16666666681744183,   0.041666463838650997,
                                      0.0083333108048072244, 0.0013933770447165223, 0.00019891124585823478};
  static constexpr double kDouble[] = {0.5,
                                       0.16666666666666671,
                                       0.041666666666666671,
                                       0.0083333333333260578,
                                       0.0013888888888883692,
                                       0.00019841269875091932,
                                       2.4801587325741483e-05,
                                       2.7557255056538237e-06,
                                       2.7557273397693973e-07,
                                       2.5105359846830094e-08,
                                       2.0914788972602161e-09};
  return is_double(b, r) ? polynomial(b, r, kDouble) : polynomial(b, r, kFloat);
}

// Adding this makes the last bit of the sum the unit.
template <class B> double magic(B& b, V<B> x) {
  return is_double(b, x) ? 0x1.8p52 : 0x1.8p23;
}

// Adding this to an exponent also leaves its biased form in the low bits.
template <class B> V<B> exponent_magic(B& b, V<B> like) {
  return b.constant(like, magic(b, like) + (is_double(b, like) ? 1023 : 127));
}

// sign * x = n ln 2 + sign * r with |r| <= ln 2 / 2. `bits` are those of n + exponent_magic.
template <class B> struct ExpReduction { V<B> n, bits, r; };

template <class B> ExpReduction<B> reduce_exp(B& b, V<B> x, int sign = 1) {
  // ln 2 in two parts, the first short enough that n times it is exact without a fused multiply-add.
  bool wide = is_double(b, x);
  double high = wide ? 0.69314718036912381649 : 0.693359375;
  double low = wide ? 1.9082149292705877e-10 : kLn2 - high;
  V<B> shift = exponent_magic(b, x);
  V<B> shifted = b.fma(x, b.constant(x, sign / kLn2), shift);
  V<B> n = b.sub(shifted, shift);
  V<B> r = b.fma(n, b.constant(x, -sign * low), b.fma(n, b.constant(x, -sign * high), x));
  return {n, b.bits_of(shifted), r};
}

// 2^n from the bits of n + exponent_magic; n within the exponents of normal numbers.
template <class B> V<B> power_of_two(B& b, V<B> bits) {
  return b.float_of(b.shl(bits, b.integer(bits, b.bits(bits) == 64 ? 52 : 23)));
}

// x bounded to [low, high], NaN kept.
template <class B> V<B> bounded(B& b, V<B> x, double low, double high) {
  return b.min_fast(b.constant(x, high), b.max_fast(b.constant(x, low), x));
}

// exp of an argument whose result is a normal number.
template <class B> V<B> exp_normal(B& b, V<B> x) {
  ExpReduction<B> reduced = reduce_exp(b, x);
  V<B> tail = b.fma(b.mul(reduced.r, reduced.r), exp_tail(b, reduced.r), reduced.r);
  V<B> scale = power_of_two(b, reduced.bits);
  return b.fma(tail, scale, scale);
}

// value * 2^n in two steps, as 2^n itself may be no normal number; only the second rounds.
template <class B> V<B> times_power_of_two(B& b, V<B> value, V<B> n) {
  V<B> shift = exponent_magic(b, value);
  V<B> half = b.fma(n, b.constant(value, 0.5), shift);
  V<B> rest = b.add(b.sub(n, b.sub(half, shift)), shift);
  value = b.mul(value, power_of_two(b, b.bits_of(half)));
  return b.mul(value, power_of_two(b, b.bits_of(rest)));
}

template <class B> V<B> exp(B& b, V<B> x) {
  bool wide = is_double(b, x);
  x = wide ? bounded(b, x, -746, 710) : bounded(b, x, -104, 89);
  ExpReduction<B> reduced = reduce_exp(b, x);
  V<B> value = b.add(b.fma(b.mul(reduced.r, reduced.r), exp_tail(b, reduced.r), reduced.r), b.constant(x, 1));
  return times_power_of_two(b, value, reduced.n);
}

// exp(sign * r) for |r| <= ln 2 / 2 to 1.5e-7, relative, times the power of two that a reduction left. The
// result and the power are normal numbers.
template <class B> V<B> exp_of_parts(B& b, const ExpReduction<B>& reduced, int sign = 1) {
  const double odd = sign;
  const double coefficients[] = {1,
                                 odd * 0.999999706296772,
                                 0.4999914782550095,
                                 odd * 0.1666763817670178,
                                 0.041898161109123276,
                                 odd * 0.008290269021368675};
  return b.mul(polynomial(b, reduced.r, coefficients), power_of_two(b, reduced.bits));
}

// exp for [-87, 0] to about 2e-7, relative: with the shortest polynomial and ln 2 in one part. For sums of
// weights and the like, where larger terms hide the error of small ones.
template <class B> V<B> exp_short(B& b, V<B> x) {
  if (is_double(b, x)) return exp_normal(b, x);
  V<B> shift = exponent_magic(b, x);
  V<B> shifted = b.fma(x, b.constant(x, 1 / kLn2), shift);
  V<B> n = b.sub(shifted, shift);
  return exp_of_parts<B>(b, {n, b.bits_of(shifted), b.fma(n, b.constant(x, -kLn2), x)});
}

// 2^(scale * x - whole) to about 2e-7, relative, for a whole number such that the power is 1 at most or
// little more. `center` is exponent_magic less that number, exactly; `min` is an x that makes the exponent
// -127: it and all smaller x give 0. Both products are fused, so that large x are as exact as their
// difference.
template <class B> V<B> relative_power(B& b, V<B> x, V<B> scale, V<B> center, V<B> min) {
  x = b.max_fast(min, x);
  V<B> shifted = b.fma(x, scale, center);
  V<B> r = b.fma(x, scale, b.sub(center, shifted));
  // The coefficients of exp_of_parts times powers of ln 2.
  const double coefficients[] = {1,
                                 0.6931469769803809,
                                 0.24022241266103617,
                                 0.055507344032735044,
                                 0.009671566150074383,
                                 0.0013264654085514437};
  return b.mul(polynomial(b, r, coefficients), power_of_two(b, b.bits_of(shifted)));
}

template <class B> V<B> expm1(B& b, V<B> x) {
  V<B> bound = is_double(b, x) ? bounded(b, x, -60, 710) : bounded(b, x, -30, 89);
  ExpReduction<B> reduced = reduce_exp(b, bound);
  V<B> tail = b.fma(b.mul(reduced.r, reduced.r), exp_tail(b, reduced.r), reduced.r);
  // 2 * (2^(n-1) * tail + (2^(n-1) - 1/2)), as 2^n may overflow where the result does not.
  V<B> half = power_of_two(b, b.isub(reduced.bits, b.integer(reduced.bits, 1)));
  V<B> value = b.fma(half, tail, b.sub(half, b.constant(x, 0.5)));
  value = b.add(value, value);
  // Tiny arguments are their own result, zeros with their sign.
  V<B> tiny = b.fcmp(Cmp::Lt, b.abs(x), b.constant(x, is_double(b, x) ? 1e-17 : 1e-9));
  return b.select(tiny, x, value);
}

// (2 atanh(s) - 2 s) / s^3 in z = s^2 for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1).
template <class B> V<B> log_tail(B& b, V<B> z) {
  static constexpr double kFloat[] = {0.66666666667376651, 0.39999998795219155, 0.28571754968350349,
                                      0.22191373380944632, 0.19363186932161763};
  static constexpr double kDouble[] = {0.66666666666666663, 0.39999999999999991, 0.28571428571435381,
                                       0.22222222219852464, 0.1818181859457047,  0.15384575060560599,
                                       0.13335641774000268, 0.1168805409426866,  0.11882627381096524};
  return is_double(b, z) ? polynomial(b, z, kDouble) : polynomial(b, z, kFloat);
}

// Integers below 2^22 (f32) or 2^51 (f64) in absolute value, as floats: machines without a conversion from
// 64-bit integers take this path too.
template <class B> V<B> small_int_to_float(B& b, V<B> like, V<B> integer) {
  V<B> shift = b.constant(like, magic(b, like));
  return b.sub(b.float_of(b.iadd(integer, b.bits_of(shift))), shift);
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)), of a finite x > 0.
template <class B> struct LogReduction { V<B> e, m; };

template <class B> LogReduction<B> reduce_log(B& b, V<B> x) {
  bool wide = is_double(b, x);
  V<B> denormal = b.fcmp(Cmp::Lt, x, b.constant(x, wide ? 0x1p-1022 : 0x1p-126));
  V<B> normal = b.select(denormal, b.mul(x, b.constant(x, 0x1p60)), x);
  V<B> bits = b.bits_of(normal);
  int shift = wide ? 52 : 23;
  V<B> offset = b.isub(bits, b.integer(bits, wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3));
  V<B> exponent = b.ashr(offset, b.integer(bits, shift));
  V<B> m = b.float_of(b.isub(bits, b.shl(exponent, b.integer(bits, shift))));
  V<B> scaled = b.select(denormal, b.constant(x, 60), b.constant(x, 0));
  return {b.sub(small_int_to_float(b, x, exponent), scaled), m};
}

template <class B> V<B> log(B& b, V<B> x) {
  bool wide = is_double(b, x);
  V<B> zero = b.constant(x, 0);
  auto [e, m] = reduce_log(b, x);
  V<B> f = b.sub(m, b.constant(x, 1));
  V<B> s = b.div(f, b.add(f, b.constant(x, 2)));
  V<B> z = b.mul(s, s);
  V<B> tail = b.mul(z, log_tail(b, z));
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + tail)).
  V<B> half_square = b.mul(b.mul(f, f), b.constant(x, 0.5));
  double high = wide ? 0.69314718036912381649 : 0.693359375;
  double low = wide ? 1.9082149292705877e-10 : kLn2 - high;
  V<B> small = b.fma(s, b.add(half_square, tail), b.mul(e, b.constant(x, low)));
  V<B> result = b.fma(e, b.constant(x, high), b.sub(f, b.sub(half_square, small)));
  result = b.select(b.fcmp(Cmp::Eq, x, zero), b.constant(x, -kInfinity), result);
  result = b.select(b.fcmp(Cmp::Lt, x, zero), b.constant(x, kNaN), result);
  V<B> finite = b.fcmp(Cmp::Lt, x, b.constant(x, kInfinity));
  return b.select(b.select(finite, finite, b.fcmp(Cmp::Lt, x, zero)), result, x);
}

template <class B> V<B> log1p(B& b, V<B> x) {
  V<B> one = b.constant(x, 1);
  V<B> u = b.add(one, x);
  // The part of x that the sum lost.
  V<B> lost = b.sub(x, b.sub(u, one));
  V<B> value = b.add(log(b, u), b.div(lost, u));
  value = b.select(b.fcmp(Cmp::Eq, u, one), x, value);
  V<B> regular = b.fcmp(Cmp::Gt, u, b.constant(x, 0));
  V<B> bounded_above = b.fcmp(Cmp::Lt, u, b.constant(x, kInfinity));
  return b.select(b.iand(regular, bounded_above), value, log(b, u));
}

// e / (e + 2) for e = exp(2 x) - 1, which is 2^n (exp(2 r) - 1) - (1 - 2^n) where 2 x = n ln 2 + 2 r: one
// form for all x, to 3.4 ulp. Zeros of r, like those of e, keep their sign.
template <class B> V<B> tanh_float(B& b, V<B> x) {
  // (exp(2 r) - 1) / r for |r| <= ln 2 / 4.
  static constexpr double kCoefficients[] = {
      2, 1.9999999259846601, 1.3333234739400945, 0.6666752114050004, 0.2677295082560933, 0.08884810486639705};
  x = bounded(b, x, -9.5, 9.5);
  V<B> shift = exponent_magic(b, x), one = b.constant(x, 1);
  V<B> shifted = b.fma(x, b.constant(x, 2 / kLn2), shift);
  V<B> r = b.fma(b.sub(shifted, shift), b.constant(x, -kLn2 / 2), x);
  V<B> scale = power_of_two(b, b.bits_of(shifted));
  V<B> e = b.fma(scale, b.mul(r, polynomial(b, r, kCoefficients)), b.neg(b.sub(one, scale)));
  return b.div(e, b.add(e, b.constant(x, 2)));
}

template <class B> V<B> tanh(B& b, V<B> x) {
  if (!is_double(b, x)) return tanh_float(b, x);
  V<B> a = b.abs(x);
  V<B> e = expm1(b, b.add(a, a));
  V<B> value = b.div(e, b.add(e, b.constant(x, 2)));
  V<B> large = b.fcmp(Cmp::Gt, a, b.constant(x, 20));
  return b.copysign(b.select(large, b.constant(x, 1), value), x);
}

// 1 / (1 + exp(-x)). In f32 results below the smallest normal number are zero; in f64 from exp(-|x|), so that
// they keep their digits.
template <class B> V<B> logistic(B& b, V<B> x) {
  V<B> one = b.constant(x, 1), zero = b.constant(x, 0);
  if (is_double(b, x)) {
    V<B> e = exp(b, b.neg(b.abs(x)));
    return b.div(b.select(b.fcmp(Cmp::Ge, x, zero), one, e), b.add(one, e));
  }
  constexpr double kMax = 87.3365; // -log of the smallest normal number
  V<B> e = exp_of_parts(b, reduce_exp(b, bounded(b, x, -kMax, kMax), -1), -1);
  V<B> tiny = b.fcmp(Cmp::Lt, x, b.constant(x, -kMax));
  return b.select(tiny, zero, b.reciprocal(b.add(e, one)));
}

template <class B> V<B> erf_float(B& b, V<B> x) {
  // erf(x) / x in x^2 for |x| <= 1, and log(1 - erf(x)) for 1 <= x <= 4.1.
  static constexpr double kSmall[] = {1.1283791658483509,    -0.37612626666720334,  0.11283594715160218,
                                      -0.026854212010626412, 0.0051890874234339739, -0.00080168642871658699,
                                      7.8758750626854883e-05};
  static constexpr double kLarge[] = {
      0.00029793746218116451, -1.1301414603887128,     -0.63198706590277531,
      -0.10992448102469804,   0.026330274603214635,    -0.004726724976851975,
      0.00058959892853278971, -4.5181017043665538e-05, 1.5917062180435699e-06};
  V<B> a = b.abs(x);
  V<B> small = b.mul(x, polynomial(b, b.mul(x, x), kSmall));
  V<B> rest = exp_normal(b, polynomial(b, b.min_fast(b.constant(x, 4.1), a), kLarge));
  V<B> large = b.copysign(b.sub(b.constant(x, 1), rest), x);
  return b.select(b.fcmp(Cmp::Lt, a, b.constant(x, 1)), small, large);
}

template <class B> V<B> erf_double(B& b, V<B> x) {
  // erf(x) / x in x^2 for |x| <= 1, and (1 - erf(x)) exp(x^2) in (x - 3) / (x + 3) for 1 <= x <= 6.
  static constexpr double kSmall[] = {
      1.1283791670955126,     -0.37612638903183543,    0.11283791670945006,    -0.02686617064323777,
      0.0052239776071164225,  -0.00085483259753896918, 0.00012055294904839707, -1.4924736907419661e-05,
      1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08, -7.7958988270021425e-10};
  static constexpr double kLarge[] = {
      0.17900115118138996,     -0.32623356004303722,   0.24560380171233093,    -0.15011593650077582,
      0.071665837197973314,    -0.024392499318790735,  0.0042691363330778689,  0.00070774644356119719,
      -0.00059706195318153519, 4.5255201405795361e-05, 6.4056577940516663e-05, -1.2859347351455289e-05,
      -7.9776965796440723e-06, 2.1124428949403864e-06, 1.2459620847174093e-06, -2.6915157592850126e-07,
      -2.0355575642200858e-07};
  V<B> a = b.abs(x);
  V<B> small = b.mul(x, polynomial(b, b.mul(x, x), kSmall));
  V<B> u = b.min_fast(b.constant(x, 6), a);
  V<B> three = b.constant(x, 3);
  V<B> t = b.div(b.sub(u, three), b.add(u, three));
  V<B> rest = b.mul(exp(b, b.neg(b.mul(u, u))), polynomial(b, t, kLarge));
  V<B> large = b.copysign(b.sub(b.constant(x, 1), rest), x);
  return b.select(b.fcmp(Cmp::Lt, a, b.constant(x, 1)), small, large);
}

template <class B> V<B> erf(B& b, V<B> x) {
  return is_double(b, x) ? erf_double(b, x) : erf_float(b, x);
}

// factor * (1 + erf(scale * x)) to 1e-7 of the factor, which is positive as the scale is: from 1 - erf(|x|) =
// exp(polynomial), which serves the whole range and leaves no cancellation for negative arguments. f32 only.
template <class B> V<B> one_plus_erf_short(B& b, V<B> x, double scale, double factor) {
  static constexpr double kLog[] = {1.505351817851497e-08, -1.128380759481013,    -0.6365931735141752,
                                    -0.10293696395307443,  0.019617373302405136,  -0.0005719615578634509,
                                    -0.001012258875786846, 0.0003028664373655889, -3.074301311145962e-05};
  double scaled[std::size(kLog)], power = 1;
  for (size_t i = 0; i < std::size(kLog); ++i, power *= scale) scaled[i] = kLog[i] * power;
  scaled[0] += std::log(factor);
  V<B> a = b.abs(x), zero = b.constant(x, 0);
  V<B> none = b.fcmp(Cmp::Gt, a, b.constant(x, 4.1 / scale));
  V<B> rest = b.select(none, zero, exp_short(b, polynomial(b, a, scaled)));
  return b.select(b.fcmp(Cmp::Ge, x, zero), b.sub(b.constant(x, 2 * factor), rest), rest);
}

template <class B> V<B> one_plus_erf(B& b, V<B> x) {
  if (is_double(b, x)) return b.add(erf_double(b, x), b.constant(x, 1));
  return one_plus_erf_short(b, x, 1, 1);
}

// f64 to f32 such that a further rounding to f16 or bf16 gives what rounding the f64 at once would: inexact
// results get an odd last bit.
template <class B> V<B> to_f32_by_odd(B& b, V<B> x) {
  V<B> near = b.resize_float(x, 32);
  V<B> back = b.resize_float(near, 64);
  V<B> bits = b.bits_of(near);
  V<B> one = b.integer(bits, 1);
  V<B> beyond = b.fcmp(Cmp::Gt, b.abs(back), b.abs(x));
  V<B> odd = b.ior(b.select(beyond, b.isub(bits, one), bits), one);
  V<B> exact = b.ior(b.fcmp(Cmp::Eq, back, x), b.fcmp(Cmp::Ne, x, x));
  return b.select(exact, near, b.float_of(odd));
}

} // namespace math
} // namespace firn::scalar_ops

#include "compiler/graph/scalar_hyperbolic.h"
#include "compiler/graph/scalar_trigonometry.h"
