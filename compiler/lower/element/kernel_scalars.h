// The builder that scalar_ops sees: machine operations of the kernel IR on scalars or vectors.
#pragma once

#include "compiler/graph/scalar_ops.h"
#include "compiler/kernel/builder.h"

namespace firn::lower {

using scalar_ops::Cmp;

class KernelScalars {
public:
  using V = kernel::Register;
  using K = kernel::OpKind;
  explicit KernelScalars(kernel::Builder& builder) : b_(builder) {}

  V constant(V like, double value) { return b_.constant(b_.type(like), value); }
  V integer(V like, int64_t value) { return b_.constant_int(b_.type(like), value); }
  int bits(V v) const {
    kernel::Scalar scalar = b_.type(v).scalar;
    return scalar == kernel::Scalar::I1 ? 1 : 8 * kernel::scalar_bytes(scalar);
  }
  // Whether v is a constant with one number for all lanes, which is put into `number`.
  bool is_known(V v, double& number) const { return b_.constant_value(v, number); }

  V add(V a, V b) { return b_.binary(K::FAdd, a, b); }
  V sub(V a, V b) { return b_.binary(K::FSub, a, b); }
  V mul(V a, V b) { return b_.binary(K::FMul, a, b); }
  V div(V a, V b) { return b_.binary(K::FDiv, a, b); }
  V reciprocal(V a) { return b_.unary(K::FReciprocal, a); }
  V rem(V a, V b) { return b_.binary(K::FRem, a, b); }
  V fma(V a, V b, V c) { return b_.fma(a, b, c); }
  V neg(V a) { return b_.unary(K::FNeg, a); }
  V abs(V a) { return b_.unary(K::FAbs, a); }
  V sqrt(V a) { return b_.unary(K::FSqrt, a); }
  V floor(V a) { return b_.unary(K::FFloor, a); }
  V ceil(V a) { return b_.unary(K::FCeil, a); }
  V trunc(V a) { return b_.unary(K::FTrunc, a); }
  V round(V a) { return b_.unary(K::FRoundEven, a); }
  V copysign(V a, V b) { return b_.binary(K::FCopySign, a, b); }
  V min(V a, V b) { return keep_nan(K::FMinFast, a, b); }
  V max(V a, V b) { return keep_nan(K::FMaxFast, a, b); }
  V min_fast(V a, V b) { return b_.binary(K::FMinFast, a, b); }
  V max_fast(V a, V b) { return b_.binary(K::FMaxFast, a, b); }

  V iadd(V a, V b) { return b_.binary(K::IAdd, a, b); }
  V isub(V a, V b) { return b_.binary(K::ISub, a, b); }
  V imul(V a, V b) { return b_.binary(K::IMul, a, b); }
  V idiv(V a, V b, bool sgn) { return b_.binary(sgn ? K::SDiv : K::UDiv, a, b); }
  V irem(V a, V b, bool sgn) { return b_.binary(sgn ? K::SRem : K::URem, a, b); }
  V imin(V a, V b, bool sgn) { return b_.binary(sgn ? K::SMin : K::UMin, a, b); }
  V imax(V a, V b, bool sgn) { return b_.binary(sgn ? K::SMax : K::UMax, a, b); }
  V iand(V a, V b) { return b_.binary(K::And, a, b); }
  V ior(V a, V b) { return b_.binary(K::Or, a, b); }
  V ixor(V a, V b) { return b_.binary(K::Xor, a, b); }
  V shl(V a, V b) { return b_.binary(K::Shl, a, b); }
  V lshr(V a, V b) { return b_.binary(K::LShr, a, b); }
  V ashr(V a, V b) { return b_.binary(K::AShr, a, b); }
  V popcount(V a) { return b_.unary(K::CtPop, a); }

  V fcmp(Cmp cmp, V a, V b) { return b_.compare(K::FCmp, predicate(cmp), a, b); }
  V icmp(Cmp cmp, V a, V b, bool sgn) { return b_.compare(sgn ? K::SCmp : K::UCmp, predicate(cmp), a, b); }
  V select(V condition, V a, V b) { return b_.select(condition, a, b); }

  V to_float(V v, int bits, bool sgn) { return b_.cast(sgn ? K::SIToF : K::UIToF, v, float_scalar(bits)); }
  V to_int(V v, int bits) { return b_.cast(K::FToSI, v, int_scalar(bits)); }
  V to_int_saturating(V v, int bits, bool sgn) {
    return b_.cast(sgn ? K::FToSISat : K::FToUISat, v, int_scalar(bits));
  }
  V resize_float(V v, int to) {
    if (bits(v) == to) return v;
    return b_.cast(to > bits(v) ? K::FExt : K::FTruncTo, v, float_scalar(to));
  }
  V resize_int(V v, int to, bool sgn) {
    if (bits(v) == to) return v;
    return b_.cast(to < bits(v) ? K::Trunc : sgn ? K::SExt : K::ZExt, v, int_scalar(to));
  }
  V bits_of(V v) { return b_.cast(K::Bitcast, v, int_scalar(bits(v))); }
  V float_of(V v) { return b_.cast(K::Bitcast, v, float_scalar(bits(v))); }
  // v, of f32, rounded to a value of f16 or bf16.
  V round_narrow(V v, DType dtype) {
    double known;
    if (is_known(v, known) && (known == 0 || known == 1)) return v;
    V narrow = b_.cast(K::FTruncTo, v, dtype == DType::F16 ? kernel::Scalar::F16 : kernel::Scalar::BF16);
    return b_.cast(K::FExt, narrow, kernel::Scalar::F32);
  }

private:
  // The fast ops give their second operand if either is NaN: one instruction is enough if the first is known
  // not to be NaN.
  V keep_nan(K kind, V a, V b) {
    double known;
    if (is_known(a, known) && known == known) return b_.binary(kind, a, b);
    if (is_known(b, known) && known == known) return b_.binary(kind, b, a);
    return b_.select(fcmp(Cmp::Ne, a, a), a, b_.binary(kind, a, b));
  }
  static kernel::Predicate predicate(Cmp cmp) { return static_cast<kernel::Predicate>(cmp); }
  static kernel::Scalar float_scalar(int bits) {
    return bits == 64 ? kernel::Scalar::F64 : kernel::Scalar::F32;
  }
  static kernel::Scalar int_scalar(int bits) {
    switch (bits) {
    case 1: return kernel::Scalar::I1;
    case 8: return kernel::Scalar::I8;
    case 16: return kernel::Scalar::I16;
    case 32: return kernel::Scalar::I32;
    default: return kernel::Scalar::I64;
    }
  }
  kernel::Builder& b_;
};

} // namespace firn::lower
