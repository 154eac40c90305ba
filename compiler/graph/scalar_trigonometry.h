// The circular functions and their inverses, built on scalar_math.h, which includes this file.
//
// Sine and cosine of f32 reduce every argument with 96 bits of 2/pi in integer arithmetic, so that huge ones
// are as good as small ones. What f32 computes takes f32 alone, which is all that some CPUs have.
#pragma once

namespace firn::scalar_ops::math {

// x = quadrant * pi/2 + r with |r| <= pi/4; the quadrant's low two bits count.
template <class B> struct AngleReduction { V<B> quadrant, r; };

// Reduction of f32 after Payne and Hanek: x = m 2^e with an integer m of 24 bits; of 2/pi only the bits
// matter whose product with m 2^e lies below 4, where quadrants repeat, and above 2^-62.
template <class B> AngleReduction<B> reduce_angle_float(B& b, V<B> x) {
  // 2/pi in words of 32 bits behind the binary point, after two words of zeros for arguments below one.
  static constexpr int64_t kTwoOverPi[] = {0,          0,          0xa2f9836e, 0x4e441529,
                                           0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041};
  V<B> bits = b.iand(b.bits_of(x), b.integer(b.bits_of(x), 0x7fffffff));
  V<B> exponent = b.lshr(bits, b.integer(bits, 23));
  V<B> mantissa = b.ior(b.iand(bits, b.integer(bits, 0x7fffff)), b.integer(bits, 0x800000));
  // The window of 96 bits starts 64 + e - 2 bits into the words, where e = exponent - 150; arguments so small
  // that it would start before them are their own remainder.
  V<B> start = b.imax(b.isub(exponent, b.integer(bits, 150 - 62)), b.integer(bits, 0), true);
  V<B> word = b.lshr(start, b.integer(bits, 5));
  V<B> shift = b.resize_int(b.iand(start, b.integer(bits, 31)), 64, false);
  V<B> wide = shift;
  V<B> window[4];
  for (int w = 0; w < 4; ++w) {
    window[w] = b.integer(wide, kTwoOverPi[w]);
    for (int k = 1; k <= 5; ++k) {
      if (w + k > 7) break;
      V<B> here = b.icmp(Cmp::Eq, word, b.integer(bits, k), false);
      window[w] = b.select(here, b.integer(wide, kTwoOverPi[w + k]), window[w]);
    }
  }
  V<B> c32 = b.integer(wide, 32);
  auto aligned = [&](V<B> high, V<B> low) { // 32 bits at `shift` of two words
    V<B> pair = b.ior(b.shl(high, c32), low);
    return b.lshr(b.shl(pair, shift), c32);
  };
  V<B> w0 = aligned(window[0], window[1]), w1 = aligned(window[1], window[2]),
       w2 = aligned(window[2], window[3]);
  V<B> m = b.resize_int(mantissa, 64, false);
  // The product modulo 2^64 of m with the window's upper 64 bits, plus the carry from the lowest word.
  V<B> product = b.iadd(b.shl(b.imul(m, w0), c32), b.iadd(b.imul(m, w1), b.lshr(b.imul(m, w2), c32)));
  // Two bits of quadrant, the rest a fraction of a quarter turn; the nearest quadrant leaves a signed
  // fraction.
  V<B> quadrant = b.lshr(b.iadd(product, b.integer(wide, int64_t{1} << 61)), b.integer(wide, 62));
  V<B> fraction = b.isub(product, b.shl(quadrant, b.integer(wide, 62)));
  V<B> high = b.resize_int(b.ashr(fraction, c32), 32, true);
  V<B> low =
      b.resize_int(b.lshr(b.iand(fraction, b.integer(wide, 0xffffffff)), b.integer(wide, 1)), 32, false);
  // fraction = high 2^-30 + low 2^-61, in units of a quarter turn: two floats and their product with pi/2.
  V<B> f1 = b.mul(b.to_float(b.iand(high, b.integer(high, ~0x7f)), 32, true), b.constant(x, 0x1p-30));
  V<B> f2 = b.mul(b.to_float(b.iand(high, b.integer(high, 0x7f)), 32, true), b.constant(x, 0x1p-30));
  V<B> f3 = b.mul(b.to_float(low, 32, true), b.constant(x, 0x1p-61));
  V<B> rest = b.add(f2, f3);
  // The fraction times pi/2, which is the sum of two floats. f1 and rest are added first; what this sum loses
  // in rounding is multiplied on its own.
  V<B> sum = b.add(f1, rest);
  V<B> lost = b.sub(rest, b.sub(sum, f1));
  V<B> r = b.fma(sum, b.constant(x, 1.57079637050628662109375),
                 b.fma(sum, b.constant(x, -4.37113900018624283e-8), b.mul(lost, b.constant(x, kPi / 2))));
  V<B> q = b.resize_int(quadrant, 32, false);
  // Odd symmetry: for negative x both change sign.
  V<B> negative = b.icmp(Cmp::Lt, b.bits_of(x), b.integer(bits, 0), true);
  r = b.select(negative, b.neg(r), r);
  q = b.select(negative, b.isub(b.integer(bits, 0), q), q);
  // Below pi/4 = 0.785..., x is its own remainder; the window does not hold the bits for the smallest ones.
  V<B> small = b.fcmp(Cmp::Lt, b.abs(x), b.constant(x, 0.78));
  r = b.select(small, x, r);
  q = b.select(small, b.integer(bits, 0), q);
  // Infinity and NaN have no remainder.
  V<B> finite = b.fcmp(Cmp::Lt, b.abs(x), b.constant(x, kInfinity));
  return {q, b.select(finite, r, b.constant(x, kNaN))};
}

// Reduction of f64 by Cody and Waite's method, with pi/2 in three parts: good to 1e-15 below about 1e6.
template <class B> AngleReduction<B> reduce_angle_double(B& b, V<B> x) {
  V<B> shift = b.constant(x, magic(b, x));
  V<B> shifted = b.fma(x, b.constant(x, 2 / kPi), shift);
  V<B> n = b.sub(shifted, shift);
  V<B> r = b.fma(n, b.constant(x, -1.5707963267341256142), x);
  r = b.fma(n, b.constant(x, -6.077100498172449683e-11), r);
  r = b.fma(n, b.constant(x, -8.3337429185208788072e-20), r);
  V<B> finite = b.fcmp(Cmp::Lt, b.abs(x), b.constant(x, kInfinity));
  return {b.bits_of(shifted), b.select(finite, r, b.constant(x, kNaN))};
}

template <class B> AngleReduction<B> reduce_angle(B& b, V<B> x) {
  return is_double(b, x) ? reduce_angle_double(b, x) : reduce_angle_float(b, x);
}

// Sine and cosine of |r| <= pi/4.
template <class B> V<B> sin_core(B& b, V<B> r) {
  static constexpr double kFloat[] = {-0.16666666663826582, 0.0083333318635607674, -0.00019840080719912243,
                                      2.7249146796813168e-06};
  static constexpr double kDouble[] = {
      -0.16666666666666666,    0.0083333333333333315,  -0.00019841269841265003, 2.7557319219291695e-06,
      -2.5052106215978872e-08, 1.6058529011960858e-10, -7.5865436341019028e-13};
  V<B> z = b.mul(r, r);
  V<B> tail = is_double(b, r) ? polynomial(b, z, kDouble) : polynomial(b, z, kFloat);
  return b.fma(b.mul(r, z), tail, r);
}
template <class B> V<B> cos_core(B& b, V<B> r) {
  static constexpr double kFloat[] = {0.041666666664297247, -0.0013888887662711772, 2.4800595356594502e-05,
                                      -2.7300309020522222e-07};
  static constexpr double kDouble[] = {
      0.041666666666666664,   -0.0013888888888888887,  2.4801587301584611e-05, -2.7557319221376434e-07,
      2.0876755781924198e-09, -1.1470459438155826e-11, 4.7457865678652127e-14};
  V<B> z = b.mul(r, r);
  V<B> tail = is_double(b, r) ? polynomial(b, z, kDouble) : polynomial(b, z, kFloat);
  V<B> value = b.fma(z, b.constant(r, -0.5), b.constant(r, 1));
  return b.fma(b.mul(z, z), tail, value);
}

// sin(x + ahead * pi/2).
template <class B> V<B> sin_shifted(B& b, V<B> x, int ahead) {
  AngleReduction<B> angle = reduce_angle(b, x);
  V<B> quadrant = b.iadd(angle.quadrant, b.integer(angle.quadrant, ahead));
  V<B> zero = b.integer(quadrant, 0);
  V<B> odd = b.icmp(Cmp::Ne, b.iand(quadrant, b.integer(quadrant, 1)), zero, false);
  V<B> value = b.select(odd, cos_core(b, angle.r), sin_core(b, angle.r));
  V<B> negative = b.icmp(Cmp::Ne, b.iand(quadrant, b.integer(quadrant, 2)), zero, false);
  return b.select(negative, b.neg(value), value);
}
template <class B> V<B> sin(B& b, V<B> x) {
  return sin_shifted(b, x, 0);
}
template <class B> V<B> cos(B& b, V<B> x) {
  return sin_shifted(b, x, 1);
}

template <class B> V<B> tan(B& b, V<B> x) {
  AngleReduction<B> angle = reduce_angle(b, x);
  V<B> s = sin_core(b, angle.r), c = cos_core(b, angle.r);
  V<B> odd = b.icmp(Cmp::Ne, b.iand(angle.quadrant, b.integer(angle.quadrant, 1)),
                    b.integer(angle.quadrant, 0), false);
  return b.div(b.select(odd, c, s), b.select(odd, b.neg(s), c));
}

// atan of 0 <= x <= 1.
template <class B> V<B> atan_core_double(B& b, V<B> x) {
  static constexpr double kTail[] = {-0.33333333333333331,  0.19999999999999804,   -0.1428571428565962,
                                     0.11111111105135144,   -0.090909087524907797, 0.076922963458330149,
                                     -0.066664243614049268, 0.058789229703096683,  -0.052304098866177415,
                                     0.045513908032899016,  -0.034565357291900668, 0.016279990057820569};
  V<B> one = b.constant(x, 1);
  // atan(x) = pi/4 + atan((x - 1) / (x + 1)) brings arguments above tan(pi/8) below it.
  V<B> large = b.fcmp(Cmp::Gt, x, b.constant(x, 0.41421356237309503));
  V<B> t = b.select(large, b.div(b.sub(x, one), b.add(x, one)), x);
  V<B> z = b.mul(t, t);
  V<B> value = b.fma(b.mul(t, z), polynomial(b, z, kTail), t);
  return b.select(large, b.add(value, b.constant(x, kPi / 4)), value);
}

// atan of 0 <= x <= 1, by one polynomial: a reduced argument would have an error of its own.
template <class B> V<B> atan_core_float(B& b, V<B> x) {
  static constexpr double kTail[] = {-0.3333333308107324,   0.19999949321140859,  -0.14284003794715355,
                                     0.11088261628593755,   -0.08931826776780907, 0.07031914248518614,
                                     -0.048960514004002705, 0.02630500108910889,  -0.00914462975022381,
                                     0.0014886919371535849};
  return odd_function(b, x, kTail);
}

// pi/2 as the sum of two numbers of the type of `like`.
template <class B> struct QuarterTurn {
  V<B> high, low;
  QuarterTurn(B& b, V<B> like)
      : high(b.constant(like, is_double(b, like) ? kPi / 2 : 1.57079637050628662109375)),
        low(b.constant(like, is_double(b, like) ? 6.1232339957367660e-17 : -4.37113900018624283e-8)) {}
};

template <class B> V<B> atan2(B& b, V<B> y, V<B> x) {
  V<B> ay = b.abs(y), ax = b.abs(x);
  V<B> steep = b.fcmp(Cmp::Gt, ay, ax);
  V<B> low = b.select(steep, ax, ay), high = b.select(steep, ay, ax);
  V<B> one = b.constant(x, 1), zero = b.constant(x, 0);
  V<B> ratio = b.div(low, high);
  ratio = b.select(b.fcmp(Cmp::Eq, high, zero), zero, ratio);                   // 0 / 0
  ratio = b.select(b.fcmp(Cmp::Eq, low, b.constant(x, kInfinity)), one, ratio); // infinity / infinity
  V<B> angle = is_double(b, x) ? atan_core_double(b, ratio) : atan_core_float(b, ratio);
  // `angle` is that to the nearest axis, which lies none, one or two quarter turns from the positive x axis.
  V<B> left = b.fcmp(Cmp::Lt, b.copysign(one, x), zero);
  QuarterTurn<B> quarter(b, x);
  V<B> turns = b.select(steep, one, b.select(left, b.constant(x, 2), zero));
  angle = b.select(b.ixor(steep, left), b.neg(angle), angle);
  angle = b.add(b.mul(turns, quarter.high), b.add(angle, b.mul(turns, quarter.low)));
  V<B> ordered = b.iand(b.fcmp(Cmp::Eq, x, x), b.fcmp(Cmp::Eq, y, y));
  return b.select(ordered, b.copysign(angle, y), b.constant(x, kNaN));
}

template <class B> V<B> atan(B& b, V<B> x) {
  return atan2(b, x, b.constant(x, 1));
}

// sqrt(1 - v^2), NaN beyond one.
template <class B> V<B> complement(B& b, V<B> v) {
  V<B> one = b.constant(v, 1);
  return b.sqrt(b.mul(b.sub(one, v), b.add(one, v)));
}

// (asin(x) - x) / x^3 in z = x^2 for |x| <= 1/2, f32.
template <class B> V<B> asin_tail(B& b, V<B> z) {
  static constexpr double kTail[] = {0.16666666337430913, 0.07500094543497617,  0.04459940152843135,
                                     0.03110066273653788, 0.017149238352314293, 0.03369084721244524};
  return polynomial(b, z, kTail);
}

// Beyond 1/2, asin(a) = pi/2 - 2 asin(root) and acos(a) = 2 asin(root) with root = sqrt((1 - a) / 2). The
// arc is asin(root) less the root; NaN beyond one.
template <class B> struct HalfArc {
  V<B> root, arc;
  HalfArc(B& b, V<B> a) {
    V<B> half = b.constant(a, 0.5), z = b.fma(b.neg(half), a, half);
    root = b.sqrt(z);
    V<B> lost = b.div(b.fma(b.neg(root), root, z), b.add(root, root)); // in rounding the root
    lost = b.select(b.fcmp(Cmp::Eq, z, b.constant(a, 0)), z, lost);
    arc = b.fma(b.mul(root, z), asin_tail(b, z), lost);
  }
};

template <class B> V<B> asin_float(B& b, V<B> x) {
  V<B> a = b.abs(x), z = b.mul(x, x);
  V<B> small = b.fma(b.mul(a, z), asin_tail(b, z), a);
  HalfArc<B> rest(b, a);
  QuarterTurn<B> quarter(b, x);
  V<B> large =
      b.sub(b.sub(quarter.high, b.add(rest.root, rest.root)), b.sub(b.add(rest.arc, rest.arc), quarter.low));
  return b.copysign(b.select(b.fcmp(Cmp::Gt, a, b.constant(x, 0.5)), large, small), x);
}

template <class B> V<B> acos_float(B& b, V<B> x) {
  V<B> a = b.abs(x), z = b.mul(x, x);
  QuarterTurn<B> quarter(b, x);
  V<B> small = b.sub(quarter.high, b.sub(x, b.fma(b.neg(b.mul(x, z)), asin_tail(b, z), quarter.low)));
  HalfArc<B> rest(b, a);
  V<B> right = b.add(rest.root, rest.arc);
  V<B> left = b.sub(quarter.high, b.add(rest.root, b.sub(rest.arc, quarter.low)));
  V<B> large = b.select(b.fcmp(Cmp::Gt, x, b.constant(x, 0)), right, left);
  return b.select(b.fcmp(Cmp::Gt, a, b.constant(x, 0.5)), b.add(large, large), small);
}

template <class B> V<B> asin(B& b, V<B> x) {
  return is_double(b, x) ? atan2(b, x, complement(b, x)) : asin_float(b, x);
}
template <class B> V<B> acos(B& b, V<B> x) {
  return is_double(b, x) ? atan2(b, complement(b, x), x) : acos_float(b, x);
}

} // namespace firn::scalar_ops::math
