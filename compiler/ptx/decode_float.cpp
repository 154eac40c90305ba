// Arithmetic on f16, bf16, f32, f64 and pairs. Approximations are the true value, rounded.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

#include <limits>
#include <type_traits>

namespace firn::ptx {
namespace {

struct Add {
  static float apply(float a, float b) { return a + b; }
  static double apply(double a, double b) { return a + b; }
  static Wide apply(Wide a, Wide b) { return {multiply_add_odd(a.value, 1, b.value)}; }
};
struct Sub {
  static float apply(float a, float b) { return a - b; }
  static double apply(double a, double b) { return a - b; }
  static Wide apply(Wide a, Wide b) { return {multiply_add_odd(a.value, 1, -b.value)}; }
};
struct Mul {
  static float apply(float a, float b) { return a * b; }
  static double apply(double a, double b) { return a * b; }
  static Wide apply(Wide a, Wide b) { return {a.value * b.value}; }
};
struct Fma {
  static float apply(float a, float b, float c) { return std::fma(a, b, c); }
  static double apply(double a, double b, double c) { return std::fma(a, b, c); }
  static Wide apply(Wide a, Wide b, Wide c) { return {multiply_add_odd(a.value, b.value, c.value)}; }
};

bool is_less(double a, double b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <bool kKeepNan, bool kMax> struct Extreme {
  template <class T> static T of(T a, T b) {
    if (a != a || b != b) {
      if (kKeepNan) return std::numeric_limits<T>::quiet_NaN();
      return a != a ? b : a;
    }
    return is_less(a, b) == kMax ? b : a;
  }
  static float apply(float a, float b) { return of(a, b); }
  static double apply(double a, double b) { return of(a, b); }
  static Wide apply(Wide a, Wide b) { return {of(a.value, b.value)}; }
};

#if defined(__x86_64__)
// Without the host's instruction each of the 32 products of a warp is a call.
__attribute__((target("fma"))) void fused_f32(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t* d = warp.row(op.d);
  const uint64_t *a = warp.row(op.a), *b = warp.row(op.b), *c = warp.row(op.c);
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      d[lane] = Bits<float>::to(
          __builtin_fmaf(Bits<float>::from(a[lane]), Bits<float>::from(b[lane]), Bits<float>::from(c[lane])));
}

bool host_has_fma() {
  return __builtin_cpu_supports("fma") != 0;
}
#else
constexpr Execute fused_f32 = nullptr;
bool host_has_fma() {
  return false;
}
#endif

struct Div {
  static float apply(float a, float b) { return a / b; }
  static double apply(double a, double b) { return a / b; }
  static Wide apply(Wide a, Wide b) { return {a.value / b.value}; }
};

// A function of one number by its value in double. F is stateless.
template <double (*kFunction)(double)> struct Of {
  static float apply(float a) { return static_cast<float>(kFunction(a)); }
  static double apply(double a) { return kFunction(a); }
  static Wide apply(Wide a) { return {kFunction(a.value)}; }
};
struct Sqrt {
  static float apply(float a) { return std::sqrt(a); }
  static double apply(double a) { return std::sqrt(a); }
  static Wide apply(Wide a) { return {std::sqrt(a.value)}; }
};
struct Rcp {
  static float apply(float a) { return 1 / a; }
  static double apply(double a) { return 1 / a; }
  static Wide apply(Wide a) { return {1 / a.value}; }
};

double inverse_root(double a) {
  return 1 / std::sqrt(a);
}
double exp2_of(double a) {
  return std::exp2(a);
}
double log2_of(double a) {
  return std::log2(a);
}
double sin_of(double a) {
  return std::sin(a);
}
double cos_of(double a) {
  return std::cos(a);
}
double tanh_of(double a) {
  return std::tanh(a);
}

template <class F, int kOperands> void emit_float(Decoder& decoder, Type type, Op op) {
  if (!decoder.expect_operands(kOperands + 1)) return;
  op.d = decoder.target(size_t{0}, type);
  uint32_t* rows[] = {&op.a, &op.b, &op.c};
  for (size_t i = 0; i < kOperands; ++i) *rows[i] = decoder.source(i + 1, type);
  op.execute = float_op<F, kOperands>(type, op);
  bool is_plain = !op.flush && !op.saturate && op.rounding == Rounding::Nearest;
  if (std::is_same_v<F, Fma> && type == Type::F32 && is_plain && host_has_fma()) op.execute = fused_f32;
  if (!op.execute) return decoder.unsupported_opcode();
  decoder.emit(op);
}

Op begin_float(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Float);
  op.rounding = decoder.take_rounding();
  op.flush = decoder.take("ftz");
  op.saturate = decoder.take("sat");
  return op;
}

// abs and neg change the sign bit alone: NaN keeps its bits.
void decode_sign(Decoder& decoder, Type type, bool is_abs) {
  Op op = decoder.begin(OpClass::Float);
  bool flush = decoder.take("ftz");
  if (!decoder.expect_operands(2)) return;
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  int size = size_of(type);
  bool is_pair = type == Type::F16x2 || type == Type::BF16x2;
  op.value = static_cast<int64_t>(size == 2   ? 0x8000
                                  : is_pair   ? 0x80008000
                                  : size == 4 ? 0x80000000
                                              : uint64_t{1} << 63);
  if (flush && type != Type::F32) return decoder.unsupported_opcode();
  op.flush = flush;
  auto run = [](auto change) -> Execute {
    using Change = decltype(change);
    return [](Warp& warp, const Op& op, uint32_t mask) {
      each_lane(mask, [&](int lane) {
        uint64_t bits = warp.row(op.a)[lane];
        if (op.flush && (bits & 0x7f800000) == 0) bits &= 0x80000000;
        warp.row(op.d)[lane] = Change{}(bits, static_cast<uint64_t>(op.value));
      });
    };
  };
  op.execute = is_abs ? run([](uint64_t bits, uint64_t sign) { return bits & ~sign; })
                      : run([](uint64_t bits, uint64_t sign) { return bits ^ sign; });
  decoder.emit(op);
}

void decode_extreme(Decoder& decoder, Type type, bool is_max) {
  bool keeps_nan = decoder.take("NaN");
  Op op = begin_float(decoder);
  if (is_max)
    keeps_nan ? emit_float<Extreme<true, true>, 2>(decoder, type, op)
              : emit_float<Extreme<false, true>, 2>(decoder, type, op);
  else
    keeps_nan ? emit_float<Extreme<true, false>, 2>(decoder, type, op)
              : emit_float<Extreme<false, false>, 2>(decoder, type, op);
}

void decode_fma(Decoder& decoder) {
  Type type = decoder.expect_type();
  decode_float_arithmetic(decoder, type);
}

void decode_div_float(Decoder& decoder, Type type) {
  decoder.take("approx") || decoder.take("full");
  emit_float<Div, 2>(decoder, type, begin_float(decoder));
}

template <class F> void decode_one(Decoder& decoder) {
  decoder.take("approx");
  Op op = begin_float(decoder);
  emit_float<F, 1>(decoder, decoder.expect_type(), op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"fma", decode_fma},
    {"sqrt", decode_one<Sqrt>},
    {"rcp", decode_one<Rcp>},
    {"rsqrt", decode_one<Of<inverse_root>>},
    {"ex2", decode_one<Of<exp2_of>>},
    {"lg2", decode_one<Of<log2_of>>},
    {"sin", decode_one<Of<sin_of>>},
    {"cos", decode_one<Of<cos_of>>},
    {"tanh", decode_one<Of<tanh_of>>},
};

} // namespace

bool is_float_like(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F16x2 || type == Type::BF16x2 ||
         type == Type::F32 || type == Type::F64;
}

void decode_float_arithmetic(Decoder& decoder, Type type) {
  std::string_view opcode = decoder.opcode();
  if (opcode == "min" || opcode == "max") return decode_extreme(decoder, type, opcode == "max");
  if (opcode == "abs" || opcode == "neg") return decode_sign(decoder, type, opcode == "abs");
  if (opcode == "div") return decode_div_float(decoder, type);
  Op op = begin_float(decoder);
  if (opcode == "add") return emit_float<Add, 2>(decoder, type, op);
  if (opcode == "sub") return emit_float<Sub, 2>(decoder, type, op);
  if (opcode == "mul") return emit_float<Mul, 2>(decoder, type, op);
  if (opcode == "fma" || opcode == "mad") return emit_float<Fma, 3>(decoder, type, op);
  decoder.unsupported_opcode();
}

std::span<const OpcodeDecoder> float_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
