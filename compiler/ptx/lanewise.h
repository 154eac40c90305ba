// Operations that each lane does for itself: a function of one to three values, made into code for warps.
#pragma once

#include "compiler/ptx/floats.h"
#include "compiler/ptx/warp.h"

#include <algorithm>

namespace firn::ptx {

// Integers and untyped bits of a width. Functions are stateless lambdas, known at compile time.
template <class T, class F> void lanes_of_one(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t* d = warp.row(op.d);
  const uint64_t* a = warp.row(op.a);
  each_lane(mask, [&](int lane) { d[lane] = static_cast<uint64_t>(F{}(static_cast<T>(a[lane]))); });
}

template <class T, class F> void lanes_of_two(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t* d = warp.row(op.d);
  const uint64_t *a = warp.row(op.a), *b = warp.row(op.b);
  each_lane(mask, [&](int lane) {
    d[lane] = static_cast<uint64_t>(F{}(static_cast<T>(a[lane]), static_cast<T>(b[lane])));
  });
}

// The third operand may be wider than the others.
template <class T, class C, class F> void lanes_of_three(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t* d = warp.row(op.d);
  const uint64_t *a = warp.row(op.a), *b = warp.row(op.b), *c = warp.row(op.c);
  each_lane(mask, [&](int lane) {
    d[lane] =
        static_cast<uint64_t>(F{}(static_cast<T>(a[lane]), static_cast<T>(b[lane]), static_cast<C>(c[lane])));
  });
}

template <class T, class F> Execute one(F) {
  return lanes_of_one<T, F>;
}
template <class T, class F> Execute two(F) {
  return lanes_of_two<T, F>;
}
template <class T, class F> Execute three(F) {
  return lanes_of_three<T, T, F>;
}
template <class T, class C, class F> Execute three_wide(F) {
  return lanes_of_three<T, C, F>;
}

// How floats are computed with: `Value` is what functions see. Narrow formats are computed in double, whose
// results they round once; their functions keep an odd last bit where double itself has to round.
struct F32Codec {
  using Value = float;
  static Value from(uint64_t bits) { return Bits<float>::from(bits); }
  static uint64_t to(Value value, Rounding) { return Bits<float>::to(value); }
  static Value flush(Value value) {
    return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
  }
};
struct F64Codec {
  using Value = double;
  static Value from(uint64_t bits) { return Bits<double>::from(bits); }
  static uint64_t to(Value value, Rounding) { return Bits<double>::to(value); }
  static Value flush(Value value) { return value; }
};
struct Wide {
  double value;
};
template <const Format& kFormat> struct NarrowCodec {
  using Value = Wide;
  static Value from(uint64_t bits) { return {widen(static_cast<uint32_t>(bits) & 0xffff, kFormat)}; }
  static uint64_t to(Value value, Rounding rounding) { return narrow(value.value, kFormat, rounding); }
  static Value flush(Value value) {
    bool is_small = std::fabs(value.value) < std::ldexp(1.0, 1 - kFormat.bias());
    return {is_small ? std::copysign(0.0, value.value) : value.value};
  }
};

inline float saturated(float value) {
  return value > 0 ? std::min(value, 1.0f) : 0.0f;
}
inline double saturated(double value) {
  return value > 0 ? std::min(value, 1.0) : 0.0;
}
inline Wide saturated(Wide value) {
  return {saturated(value.value)};
}

// F of the operands in rows a, b, c; `kPairs`: of both halves of 32 bits. Unless `kPlain`, operands and
// results are flushed and limited as the operation says, and the host's rounding is set.
template <class Codec, int kOperands, bool kPairs, bool kPlain, class F>
void float_lanes(Warp& warp, const Op& op, uint32_t mask) {
  RoundingScope scope(kPlain ? Rounding::Nearest : op.rounding);
  uint64_t* d = warp.row(op.d);
  const uint64_t* rows[] = {warp.row(op.a), warp.row(op.b), warp.row(op.c)};
  auto part = [&](int lane, int shift) {
    auto operand = [&](int i) {
      auto value = Codec::from(rows[i][lane] >> shift);
      return !kPlain && op.flush ? Codec::flush(value) : value;
    };
    typename Codec::Value result;
    if constexpr (kOperands == 1)
      result = F::apply(operand(0));
    else if constexpr (kOperands == 2)
      result = F::apply(operand(0), operand(1));
    else
      result = F::apply(operand(0), operand(1), operand(2));
    if (!kPlain && op.flush) result = Codec::flush(result);
    if (!kPlain && op.saturate) result = saturated(result);
    return Codec::to(result, op.rounding);
  };
  each_lane(mask, [&](int lane) {
    if constexpr (kPairs)
      d[lane] = part(lane, 0) | part(lane, 16) << 16;
    else
      d[lane] = part(lane, 0);
  });
}

template <class F, int kOperands, bool kPlain> Execute float_op_of(Type type) {
  switch (type) {
  case Type::F32: return float_lanes<F32Codec, kOperands, false, kPlain, F>;
  case Type::F64: return float_lanes<F64Codec, kOperands, false, kPlain, F>;
  case Type::F16: return float_lanes<NarrowCodec<kF16>, kOperands, false, kPlain, F>;
  case Type::BF16: return float_lanes<NarrowCodec<kBF16>, kOperands, false, kPlain, F>;
  case Type::F16x2: return float_lanes<NarrowCodec<kF16>, kOperands, true, kPlain, F>;
  case Type::BF16x2: return float_lanes<NarrowCodec<kBF16>, kOperands, true, kPlain, F>;
  default: return nullptr;
  }
}

// The code of a function of floats for an operation whose rounding, flush and saturate are set.
template <class F, int kOperands> Execute float_op(Type type, const Op& op) {
  bool is_plain = !op.flush && !op.saturate && op.rounding == Rounding::Nearest;
  return is_plain ? float_op_of<F, kOperands, true>(type) : float_op_of<F, kOperands, false>(type);
}

} // namespace firn::ptx
