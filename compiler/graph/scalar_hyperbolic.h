// The hyperbolic functions, their inverses and the power, built on scalar_math.h, which includes this file.
// What f32 computes takes f32 alone, which is all that some CPUs have.
#pragma once

namespace firn::scalar_ops::math {

// exp(x) / 2 where exp(x) alone may overflow: half of x is exact, x less ln 2 is not.
template <class B> V<B> half_exp(B& b, V<B> x) {
  V<B> half = b.constant(x, 0.5), root = exp(b, b.mul(x, half));
  return b.mul(b.mul(root, half), root);
}
template <class B> V<B> sinh_double(B& b, V<B> v) {
  V<B> a = b.abs(v), half = b.constant(v, 0.5);
  V<B> e = expm1(b, a);
  V<B> value = b.mul(half, b.add(e, b.div(e, b.add(e, b.constant(v, 1)))));
  V<B> large = b.fcmp(Cmp::Gt, a, b.constant(v, 40));
  return b.copysign(b.select(large, half_exp(b, a), value), v);
}
template <class B> V<B> cosh_double(B& b, V<B> v) {
  V<B> a = b.abs(v), half = b.constant(v, 0.5);
  V<B> e = exp(b, a);
  V<B> value = b.mul(half, b.add(e, b.div(b.constant(v, 1), e)));
  V<B> large = b.fcmp(Cmp::Gt, a, b.constant(v, 40));
  return b.select(large, half_exp(b, a), value);
}

// exp(a) / 2 for a >= 0 as a sum, of which the second part is what rounding the first lost. f32.
template <class B> struct HalfExp {
  V<B> high, low;
  HalfExp(B& b, V<B> a) {
    ExpReduction<B> reduced = reduce_exp(b, bounded(b, a, 0, 90));
    V<B> one = b.constant(a, 1);
    V<B> more = b.fma(b.mul(reduced.r, reduced.r), exp_tail(b, reduced.r), reduced.r);
    V<B> value = b.add(one, more);
    // A quarter, as the power of two may overflow where the half does not.
    V<B> quarter = power_of_two(b, b.isub(reduced.bits, b.integer(reduced.bits, 2)));
    V<B> lost = b.mul(b.sub(more, b.sub(value, one)), quarter);
    high = b.mul(value, quarter);
    high = b.add(high, high);
    low = b.select(b.fcmp(Cmp::Eq, high, b.constant(a, kInfinity)), b.constant(a, 0), b.add(lost, lost));
  }
  // 1 / (2 exp(a)), which is small beside the sum.
  V<B> inverse(B& b) const { return b.div(b.constant(high, 0.25), high); }
};

template <class B> V<B> sinh_float(B& b, V<B> x) {
  static constexpr double kTail[] = {0.16666666666506835,   0.008333333362098844,  0.00019841261460095246,
                                     2.755821127970848e-06, 2.500927654235858e-08, 1.7002460120361463e-10};
  V<B> a = b.abs(x);
  HalfExp<B> half(b, a);
  V<B> large = b.sub(half.high, b.sub(half.inverse(b), half.low));
  V<B> small = b.fcmp(Cmp::Lt, a, b.constant(x, 2));
  return b.copysign(b.select(small, odd_function(b, a, kTail), large), x);
}
template <class B> V<B> cosh_float(B& b, V<B> x) {
  HalfExp<B> half(b, b.abs(x));
  return b.add(half.high, b.add(half.inverse(b), half.low));
}

template <class B> V<B> sinh(B& b, V<B> x) {
  return is_double(b, x) ? sinh_double(b, x) : sinh_float(b, x);
}
template <class B> V<B> cosh(B& b, V<B> x) {
  return is_double(b, x) ? cosh_double(b, x) : cosh_float(b, x);
}

template <class B> V<B> asinh_double(B& b, V<B> v) {
  V<B> a = b.abs(v), one = b.constant(v, 1);
  V<B> square = b.mul(a, a);
  V<B> value = log1p(b, b.add(a, b.div(square, b.add(one, b.sqrt(b.add(square, one))))));
  V<B> large = b.fcmp(Cmp::Gt, a, b.constant(v, 1e8));
  return b.copysign(b.select(large, b.add(log(b, a), b.constant(v, kLn2)), value), v);
}
template <class B> V<B> acosh_double(B& b, V<B> v) {
  V<B> t = b.sub(v, b.constant(v, 1));
  V<B> value = log1p(b, b.add(t, b.sqrt(b.fma(t, t, b.add(t, t)))));
  V<B> large = b.fcmp(Cmp::Gt, v, b.constant(v, 1e8));
  value = b.select(b.fcmp(Cmp::Lt, t, b.constant(v, 0)), b.constant(v, kNaN), value);
  return b.select(large, b.add(log(b, v), b.constant(v, kLn2)), value);
}
template <class B> V<B> atanh_double(B& b, V<B> v) {
  V<B> a = b.abs(v);
  V<B> value = log1p(b, b.div(b.add(a, a), b.sub(b.constant(v, 1), a)));
  return b.copysign(b.mul(b.constant(v, 0.5), value), v);
}

// log(x + root) for x >= root or near it, with what rounding the sum lost; log(2 x) for large x. f32.
template <class B> V<B> log_of_sum(B& b, V<B> x, V<B> root) {
  V<B> sum = b.add(x, root);
  V<B> lost = b.sub(root, b.sub(sum, x));
  V<B> large = b.fcmp(Cmp::Gt, x, b.constant(x, 1e4));
  V<B> rest = b.select(large, b.constant(x, kLn2), b.div(lost, sum));
  return b.add(log(b, b.select(large, x, sum)), rest);
}

template <class B> V<B> asinh_float(B& b, V<B> x) {
  static constexpr double kTail[] = {-0.1666666661829021,   0.07499990283455929,   -0.04463958143269142,
                                     0.03033828155637181,   -0.022069243949385805, 0.01610220919796235,
                                     -0.010640807607749003, 0.0055305140434117345, -0.0018838454564312278,
                                     0.0003028242783853707};
  V<B> a = b.abs(x), one = b.constant(x, 1);
  V<B> small = b.fcmp(Cmp::Lt, a, one);
  V<B> large = log_of_sum(b, a, b.sqrt(b.fma(a, a, one)));
  return b.copysign(b.select(small, odd_function(b, a, kTail), large), x);
}
// Near one sqrt(2 t) times a polynomial in t = x - 1.
template <class B> V<B> acosh_float(B& b, V<B> x) {
  static constexpr double kTail[] = {-0.08333329198746363,   0.018749117487054465,   -0.005573069580077629,
                                     0.0018686650620779364,  -0.0006286287805985358, 0.00017339044953276224,
                                     -2.6323104309208896e-05};
  V<B> one = b.constant(x, 1), t = b.sub(x, one);
  V<B> root = b.sqrt(b.add(t, t));
  V<B> near = b.fma(b.mul(root, t), polynomial(b, t, kTail), root);
  V<B> far = log_of_sum(b, x, b.sqrt(b.fma(x, x, b.neg(one))));
  return b.select(b.fcmp(Cmp::Le, t, one), near, far);
}
template <class B> V<B> atanh_float(B& b, V<B> x) {
  static constexpr double kTail[] = {0.333333334373071,   0.19999959336218245, 0.14288286042705167,
                                     0.11050830396995578, 0.0975194085205398,  0.04091623121296743,
                                     0.15629165314108084};
  V<B> a = b.abs(x), one = b.constant(x, 1);
  V<B> above = b.add(one, a), below = b.sub(one, a);
  V<B> ratio = b.div(above, below);
  V<B> lost = b.div(b.add(b.fma(b.neg(ratio), below, above), b.sub(a, b.sub(above, one))), above);
  lost = b.select(b.fcmp(Cmp::Eq, a, one), b.constant(x, 0), lost);
  V<B> large = b.mul(b.constant(x, 0.5), b.add(log(b, ratio), lost));
  V<B> small = b.fcmp(Cmp::Lt, a, b.constant(x, 0.5));
  return b.copysign(b.select(small, odd_function(b, a, kTail), large), x);
}

template <class B> V<B> asinh(B& b, V<B> x) {
  return is_double(b, x) ? asinh_double(b, x) : asinh_float(b, x);
}
template <class B> V<B> acosh(B& b, V<B> x) {
  return is_double(b, x) ? acosh_double(b, x) : acosh_float(b, x);
}
template <class B> V<B> atanh(B& b, V<B> x) {
  return is_double(b, x) ? atanh_double(b, x) : atanh_float(b, x);
}

// The number's upper 12 bits, products of which are exact whether or not the machine multiplies and adds in
// one step. f32.
template <class B> V<B> upper_bits(B& b, V<B> x) {
  V<B> bits = b.bits_of(x);
  return b.float_of(b.iand(bits, b.integer(bits, -0x1000)));
}

// log2(x) of a finite x > 0 in two parts, to about 2^-32 of it. f32.
template <class B> struct Log2Parts {
  V<B> high, low;
  Log2Parts(B& b, V<B> x) {
    LogReduction<B> reduced = reduce_log(b, x);
    V<B> two = b.constant(x, 2), f = b.sub(reduced.m, b.constant(x, 1)), d = b.add(f, two);
    // s = f / d in two parts.
    V<B> s = b.div(f, d), s1 = upper_bits(b, s), d1 = upper_bits(b, d), d2 = b.sub(f, b.sub(d1, two));
    V<B> s2 = b.div(b.sub(b.sub(f, b.mul(s1, d1)), b.mul(s1, d2)), d);
    V<B> z = b.mul(s, s), tail = b.mul(b.mul(s, z), log_tail(b, z));
    // log2(m) = (2 s + tail) / ln 2, whose factor has 12 bits and a rest.
    constexpr double kUpper = 2.884765625;
    V<B> small = b.fma(b.constant(x, 2 / kLn2), s2, b.mul(b.constant(x, 1 / kLn2), tail));
    small = b.fma(b.constant(x, 2 / kLn2 - kUpper), s1, small);
    V<B> large = b.mul(b.constant(x, kUpper), s1), sum = b.add(reduced.e, large);
    small = b.add(b.sub(large, b.sub(sum, reduced.e)), small);
    high = b.add(sum, small);
    low = b.sub(small, b.sub(high, sum));
  }
};

// a^y for a finite a > 0, f32: 2^(y log2(a)) with a product of two parts.
template <class B> V<B> power_float(B& b, V<B> a, V<B> y) {
  constexpr double kFar = 200; // beyond it results are 0 or infinite
  Log2Parts<B> log2(b, a);
  V<B> l1 = upper_bits(b, log2.high), l2 = b.add(b.sub(log2.high, l1), log2.low);
  V<B> y1 = upper_bits(b, y), y2 = b.sub(y, y1);
  V<B> large = b.mul(y1, l1), small = b.fma(y1, l2, b.mul(y2, b.add(l1, l2)));
  small = b.select(b.fcmp(Cmp::Lt, b.abs(large), b.constant(a, kFar)), small, b.constant(a, 0));
  large = bounded(b, large, -kFar, kFar);
  V<B> shift = exponent_magic(b, a);
  V<B> n = b.sub(b.add(b.add(large, small), shift), shift);
  V<B> r = b.mul(b.add(b.sub(large, n), small), b.constant(a, kLn2));
  V<B> value = b.add(b.fma(b.mul(r, r), exp_tail(b, r), r), b.constant(a, 1));
  value = times_power_of_two(b, value, n);
  // Powers of zero and infinity are these or their inverses; NaN gives NaN.
  V<B> zero = b.constant(a, 0), infinity = b.constant(a, kInfinity);
  V<B> ends = b.ior(b.fcmp(Cmp::Eq, a, zero), b.fcmp(Cmp::Eq, a, infinity));
  V<B> inverted = b.fcmp(Cmp::Lt, y, zero);
  value = b.select(ends, b.select(inverted, b.div(b.constant(a, 1), a), a), value);
  V<B> ordered = b.iand(b.fcmp(Cmp::Eq, a, a), b.fcmp(Cmp::Eq, y, y));
  return b.select(ordered, value, b.constant(a, kNaN));
}

// IEEE 754's pow: exp(y log|x|) with the sign of odd integer powers and the values that hold even for NaN.
template <class B> V<B> power(B& b, V<B> x, V<B> y) {
  V<B> zero = b.constant(x, 0), one = b.constant(x, 1), infinity = b.constant(x, kInfinity);
  V<B> a = b.abs(x);
  V<B> value = is_double(b, x) ? exp(b, b.mul(y, log(b, a))) : power_float(b, a, y);
  V<B> is_integer = b.fcmp(Cmp::Eq, b.floor(y), y);
  V<B> half = b.mul(y, b.constant(x, 0.5));
  V<B> is_odd = b.iand(is_integer, b.fcmp(Cmp::Ne, b.floor(half), half));
  V<B> negative = b.fcmp(Cmp::Lt, b.copysign(one, x), zero);
  // Finite negative bases have only integer powers.
  V<B> undefined = b.iand(b.iand(b.fcmp(Cmp::Lt, x, zero), b.fcmp(Cmp::Lt, a, infinity)),
                          b.iand(b.fcmp(Cmp::Ne, b.floor(y), y), b.fcmp(Cmp::Lt, b.abs(y), infinity)));
  value = b.select(b.iand(negative, is_odd), b.neg(value), value);
  value = b.select(undefined, b.constant(x, kNaN), value);
  // |x| = 1 with y infinite, x = 1 and y = 0 give 1 whatever the other is.
  V<B> unit = b.iand(b.fcmp(Cmp::Eq, a, one), b.fcmp(Cmp::Eq, b.abs(y), infinity));
  unit = b.ior(unit, b.ior(b.fcmp(Cmp::Eq, x, one), b.fcmp(Cmp::Eq, y, zero)));
  return b.select(unit, one, value);
}

} // namespace firn::scalar_ops::math
