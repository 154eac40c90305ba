// The host builder of scalar_ops: values are numbers, computed at once with the machine operations that
// kernels use. For tests of the polynomials and for folding. Floats are f32 or f64 as `bits` says.
#pragma once

#include "compiler/graph/literal.h"
#include "compiler/graph/scalar_ops.h"

#include <bit>
#include <cmath>

namespace firn::scalar_ops {

class HostScalars {
public:
  struct V {
    int bits = 32;
    bool is_float = true;
    double number = 0;   // floats; an f32 is held exactly
    int64_t integer = 0; // integers, sign-extended; bools 0 or 1
  };
  static V f32(float value) { return {32, true, value, 0}; }
  static V f64(double value) { return {64, true, value, 0}; }
  static V i(int bits, int64_t value) { return {bits, false, 0, wrapped(bits, value)}; }

  V constant(V like, double value) { return make(like.bits, value); }
  V integer(V like, int64_t value) { return i(like.bits, value); }
  int bits(V v) const { return v.bits; }
  bool is_known(V v, double& number) const {
    return number = v.is_float ? v.number : static_cast<double>(v.integer), true;
  }

  V add(V a, V b) { return a.bits == 32 ? single(f(a) + f(b)) : make(64, a.number + b.number); }
  V sub(V a, V b) { return a.bits == 32 ? single(f(a) - f(b)) : make(64, a.number - b.number); }
  V mul(V a, V b) { return a.bits == 32 ? single(f(a) * f(b)) : make(64, a.number * b.number); }
  V div(V a, V b) { return a.bits == 32 ? single(f(a) / f(b)) : make(64, a.number / b.number); }
  V reciprocal(V a) { return div(constant(a, 1), a); }
  V rem(V a, V b) { return make(a.bits, std::fmod(a.number, b.number)); }
  V fma(V a, V b, V c) {
    if (!fused) return add(mul(a, b), c);
    return a.bits == 32 ? single(std::fmaf(f(a), f(b), f(c)))
                        : make(64, std::fma(a.number, b.number, c.number));
  }
  V neg(V a) { return make(a.bits, -a.number); }
  V abs(V a) { return make(a.bits, std::fabs(a.number)); }
  V sqrt(V a) { return a.bits == 32 ? single(std::sqrt(f(a))) : make(64, std::sqrt(a.number)); }
  V floor(V a) { return make(a.bits, std::floor(a.number)); }
  V ceil(V a) { return make(a.bits, std::ceil(a.number)); }
  V trunc(V a) { return make(a.bits, std::trunc(a.number)); }
  V round(V a) { return make(a.bits, std::nearbyint(a.number)); }
  V copysign(V a, V b) { return make(a.bits, std::copysign(a.number, b.number)); }
  V min(V a, V b) { return a.number != a.number ? a : min_fast(a, b); }
  V max(V a, V b) { return a.number != a.number ? a : max_fast(a, b); }
  V min_fast(V a, V b) { return a.number < b.number ? a : b; }
  V max_fast(V a, V b) { return a.number > b.number ? a : b; }

  V iadd(V a, V b) { return i(a.bits, static_cast<int64_t>(u(a) + u(b))); }
  V isub(V a, V b) { return i(a.bits, static_cast<int64_t>(u(a) - u(b))); }
  V imul(V a, V b) { return i(a.bits, static_cast<int64_t>(u(a) * u(b))); }
  V idiv(V a, V b, bool sgn) {
    if (b.integer == 0) return i(a.bits, 0);
    if (sgn && b.integer == -1) return isub(i(a.bits, 0), a);
    return i(a.bits, sgn ? a.integer / b.integer : static_cast<int64_t>(zero_extended(a) / zero_extended(b)));
  }
  V irem(V a, V b, bool sgn) { return b.integer == 0 ? a : isub(a, imul(idiv(a, b, sgn), b)); }
  V imin(V a, V b, bool sgn) { return icmp(Cmp::Lt, a, b, sgn).integer ? a : b; }
  V imax(V a, V b, bool sgn) { return icmp(Cmp::Gt, a, b, sgn).integer ? a : b; }
  V iand(V a, V b) { return i(a.bits, a.integer & b.integer); }
  V ior(V a, V b) { return i(a.bits, a.integer | b.integer); }
  V ixor(V a, V b) { return i(a.bits, a.integer ^ b.integer); }
  V shl(V a, V b) {
    return i(a.bits, zero_extended(b) >= bound(a) ? 0 : static_cast<int64_t>(u(a) << b.integer));
  }
  V lshr(V a, V b) {
    return i(a.bits, zero_extended(b) >= bound(a) ? 0 : static_cast<int64_t>(zero_extended(a) >> b.integer));
  }
  V ashr(V a, V b) { return i(a.bits, a.integer >> (zero_extended(b) >= bound(a) ? a.bits - 1 : b.integer)); }
  V popcount(V a) { return i(a.bits, std::popcount(zero_extended(a))); }

  V fcmp(Cmp cmp, V a, V b) { return i(1, holds(cmp, a.number, b.number)); }
  V icmp(Cmp cmp, V a, V b, bool sgn) {
    return i(1, sgn ? holds(cmp, a.integer, b.integer) : holds(cmp, zero_extended(a), zero_extended(b)));
  }
  V select(V condition, V a, V b) { return condition.integer & 1 ? a : b; }

  V to_float(V v, int bits, bool sgn) {
    if (sgn)
      return bits == 32 ? single(static_cast<float>(v.integer)) : make(64, static_cast<double>(v.integer));
    uint64_t value = zero_extended(v);
    return bits == 32 ? single(static_cast<float>(value)) : make(64, static_cast<double>(value));
  }
  V to_int(V v, int bits) {
    double limit = std::ldexp(1.0, bits - 1);
    bool fits = v.number >= -limit && v.number < limit;
    return i(bits, fits ? static_cast<int64_t>(v.number) : INT64_MIN >> (64 - bits));
  }
  V to_int_saturating(V v, int bits, bool sgn) {
    if (v.number != v.number) return i(bits, 0);
    double low = sgn ? -std::ldexp(1.0, bits - 1) : 0, high = std::ldexp(1.0, sgn ? bits - 1 : bits);
    if (v.number <= low) return i(bits, sgn ? INT64_MIN >> (64 - bits) : 0);
    if (v.number >= high) return i(bits, sgn ? static_cast<int64_t>(~uint64_t{0} >> (65 - bits)) : -1);
    return i(bits,
             sgn ? static_cast<int64_t>(v.number) : static_cast<int64_t>(static_cast<uint64_t>(v.number)));
  }
  V resize_float(V v, int to) { return make(to, v.number); }
  V resize_int(V v, int to, bool sgn) {
    return i(to, sgn ? v.integer : static_cast<int64_t>(zero_extended(v)));
  }
  V bits_of(V v) {
    return v.bits == 32 ? i(32, std::bit_cast<int32_t>(f(v))) : i(64, std::bit_cast<int64_t>(v.number));
  }
  V float_of(V v) {
    return v.bits == 32 ? single(std::bit_cast<float>(static_cast<int32_t>(v.integer)))
                        : make(64, std::bit_cast<double>(v.integer));
  }
  V round_narrow(V v, DType dtype) {
    return single(dtype == DType::F16 ? half_to_float(float_to_half(f(v)))
                                      : bfloat16_to_float(float_to_bfloat16(f(v))));
  }

  bool fused = true; // whether fma rounds once

private:
  static float f(V v) { return static_cast<float>(v.number); }
  static uint64_t u(V v) { return static_cast<uint64_t>(v.integer); }
  static uint64_t bound(V v) { return static_cast<uint64_t>(v.bits); }
  static uint64_t zero_extended(V v) { return v.bits == 64 ? u(v) : u(v) & ((uint64_t{1} << v.bits) - 1); }
  static int64_t wrapped(int bits, int64_t value) {
    if (bits == 1) return value & 1;
    return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
  }
  static V single(float value) { return {32, true, value, 0}; }
  static V make(int bits, double value) {
    return bits == 32 ? single(static_cast<float>(value)) : V{64, true, value, 0};
  }
  template <class T> static bool holds(Cmp cmp, T a, T b) {
    switch (cmp) {
    case Cmp::Eq: return a == b;
    case Cmp::Ne: return a != b;
    case Cmp::Lt: return a < b;
    case Cmp::Le: return a <= b;
    case Cmp::Gt: return a > b;
    case Cmp::Ge: return a >= b;
    }
    return false;
  }
};

} // namespace firn::scalar_ops
