// Conversions between all types (cvt), with every rounding; pairs and packed bytes too.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

#include <limits>

namespace firn::ptx {
namespace {

// The operation's `form` holds the types and how a number is made whole.
enum class Whole { No, Nearest, Zero, Down, Up };
int make_form(Type result, Type type, Whole whole) {
  return static_cast<int>(result) | static_cast<int>(type) << 8 | static_cast<int>(whole) << 16;
}
Type result_type(const Op& op) {
  return static_cast<Type>(op.form & 0xff);
}
Type source_type(const Op& op) {
  return static_cast<Type>(op.form >> 8 & 0xff);
}
Whole whole_of(const Op& op) {
  return static_cast<Whole>(op.form >> 16);
}

template <class F> Execute for_integer(Type type, F&& body) {
  switch (type) {
  case Type::U8:
  case Type::B8: return body(uint8_t{});
  case Type::S8: return body(int8_t{});
  case Type::U16:
  case Type::B16: return body(uint16_t{});
  case Type::S16: return body(int16_t{});
  case Type::U32:
  case Type::B32: return body(uint32_t{});
  case Type::S32: return body(int32_t{});
  case Type::U64:
  case Type::B64: return body(uint64_t{});
  case Type::S64: return body(int64_t{});
  default: return nullptr;
  }
}

template <class To, class From> To clamped(From value) {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  return value < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
}

Execute between_integers(Type result, Type type, bool saturate) {
  return for_integer(type, [&](auto from) {
    using From = decltype(from);
    return for_integer(result, [&](auto to) -> Execute {
      using To = decltype(to);
      if (saturate) return one<From>([](From a) { return clamped<To>(a); });
      return one<From>([](From a) { return static_cast<To>(a); });
    });
  });
}

double value_of(Type type, uint64_t bits) {
  switch (type) {
  case Type::F16: return widen(bits & 0xffff, kF16);
  case Type::BF16: return widen(bits & 0xffff, kBF16);
  case Type::E4M3: return widen(bits & 0xff, kE4M3);
  case Type::E5M2: return widen(bits & 0xff, kE5M2);
  case Type::F64: return Bits<double>::from(bits);
  default: return Bits<float>::from(bits);
  }
}

double made_whole(double value, Whole whole) {
  switch (whole) {
  case Whole::No: return value;
  case Whole::Nearest: return std::nearbyint(value);
  case Whole::Zero: return std::trunc(value);
  case Whole::Down: return std::floor(value);
  case Whole::Up: return std::ceil(value);
  }
  return value;
}

const Format& format_of(Type type) {
  switch (type) {
  case Type::F16: return kF16;
  case Type::BF16: return kBF16;
  case Type::E4M3: return kE4M3;
  case Type::E5M2: return kE5M2;
  case Type::TF32: return kTF32;
  default: return kF32;
  }
}

uint64_t bits_of(Type type, double value, const Op& op) {
  if (type == Type::F64) return Bits<double>::to(value);
  bool is_byte = type == Type::E4M3 || type == Type::E5M2;
  uint64_t bits = narrow(value, format_of(type), op.rounding, is_byte);
  return type == Type::TF32 ? bits << 13 : bits;
}

void between_floats(Warp& warp, const Op& op, uint32_t mask) {
  Type result = result_type(op), type = source_type(op);
  each_lane(mask, [&](int lane) {
    double value = value_of(type, warp.row(op.a)[lane]);
    if (op.flush && type == Type::F32) value = F32Codec::flush(static_cast<float>(value));
    value = made_whole(value, whole_of(op));
    if (op.saturate) value = saturated(value);
    uint64_t bits = bits_of(result, value, op);
    if (op.flush && result == Type::F32 && (bits & 0x7f800000) == 0) bits &= 0x80000000;
    warp.row(op.d)[lane] = bits;
  });
}

// Widening f32 to f64 and f16 to f32 are frequent and exact.
void widen_to_f64(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    warp.row(op.d)[lane] = Bits<double>::to(Bits<float>::from(warp.row(op.a)[lane]));
  });
}

template <class To> uint64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  // 2^bits is exact in double where the largest integer is not.
  double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (value >= end) return static_cast<uint64_t>(std::numeric_limits<To>::max());
  if (value <= static_cast<double>(std::numeric_limits<To>::min()))
    return static_cast<uint64_t>(std::numeric_limits<To>::min());
  return static_cast<uint64_t>(static_cast<To>(value));
}

template <class To> void float_to_integer(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    double value = value_of(source_type(op), warp.row(op.a)[lane]);
    if (op.flush && source_type(op) == Type::F32) value = F32Codec::flush(static_cast<float>(value));
    warp.row(op.d)[lane] = to_integer<To>(made_whole(value, whole_of(op)));
  });
}

// A double next to an integer that narrower formats round as they would the integer itself.
template <class From> double odd_double(From value) {
  auto near = static_cast<double>(value);
  auto difference = static_cast<__int128>(value) - static_cast<__int128>(near);
  if (difference == 0 || (std::bit_cast<uint64_t>(near) & 1)) return near;
  return std::nextafter(near, difference > 0 ? INFINITY : -INFINITY);
}

template <class From> void integer_to_float(Warp& warp, const Op& op, uint32_t mask) {
  Type result = result_type(op);
  RoundingScope scope(result == Type::F64 ? op.rounding : Rounding::Nearest);
  each_lane(mask, [&](int lane) {
    auto value = static_cast<From>(warp.row(op.a)[lane]);
    double wide = result == Type::F64 ? static_cast<double>(value) : odd_double(value);
    if (op.saturate) wide = saturated(wide);
    warp.row(op.d)[lane] = bits_of(result, wide, op);
  });
}

Type element_of(Type pair) {
  switch (pair) {
  case Type::F16x2: return Type::F16;
  case Type::BF16x2: return Type::BF16;
  case Type::E4M3x2: return Type::E4M3;
  default: return Type::E5M2;
  }
}

bool is_pair(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::E4M3x2 || type == Type::E5M2x2;
}

// Two f32 make a pair: a is the upper half.
void pack_pair(Warp& warp, const Op& op, uint32_t mask) {
  Type element = element_of(result_type(op));
  auto width = size_of(element) * 8;
  each_lane(mask, [&](int lane) {
    auto half = [&](uint32_t row) {
      double value = value_of(Type::F32, warp.row(row)[lane]);
      if (op.count == 2 && !(value > 0) && !std::isnan(value)) value = 0; // relu
      return bits_of(element, value, op);
    };
    warp.row(op.d)[lane] = half(op.a) << width | half(op.b);
  });
}

void convert_pair(Warp& warp, const Op& op, uint32_t mask) {
  Type to = element_of(result_type(op)), from = element_of(source_type(op));
  int to_width = size_of(to) * 8, from_width = size_of(from) * 8;
  each_lane(mask, [&](int lane) {
    uint64_t a = warp.row(op.a)[lane];
    uint64_t low = bits_of(to, value_of(from, a), op),
             high = bits_of(to, value_of(from, a >> from_width), op);
    warp.row(op.d)[lane] = low | high << to_width;
  });
}

Whole take_whole(Decoder& decoder) {
  if (decoder.take("rni")) return Whole::Nearest;
  if (decoder.take("rzi")) return Whole::Zero;
  if (decoder.take("rmi")) return Whole::Down;
  return decoder.take("rpi") ? Whole::Up : Whole::No;
}

bool is_scalar_float(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 || type == Type::F64;
}

Execute choose(const Op& op, Type result, Type type) {
  bool to_integer = is_integer(result), from_integer = is_integer(type);
  if (to_integer && from_integer) return between_integers(result, type, op.saturate);
  if (to_integer && is_scalar_float(type))
    return for_integer(result, [](auto to) -> Execute { return float_to_integer<decltype(to)>; });
  if (from_integer && is_scalar_float(result))
    return for_integer(type, [](auto from) -> Execute { return integer_to_float<decltype(from)>; });
  if (!is_scalar_float(type) || (!is_scalar_float(result) && result != Type::TF32)) return nullptr;
  if (type == Type::F32 && result == Type::F64 && !op.flush && !op.saturate) return widen_to_f64;
  return between_floats;
}

void decode_pair(Decoder& decoder, Op op, Type result, Type type) {
  if (type == Type::F32 && is_pair(result)) {
    if (!decoder.expect_operands(3)) return;
    op.b = decoder.source(2, type);
    op.execute = pack_pair;
  } else if (is_pair(type) && is_pair(result)) {
    if (!decoder.expect_operands(2)) return;
    op.execute = convert_pair;
  } else {
    return decoder.unsupported_opcode();
  }
  op.d = decoder.target(size_t{0}, result);
  op.a = decoder.source(1, type);
  decoder.emit(op);
}

void decode_cvt(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Convert);
  Whole whole = take_whole(decoder);
  op.rounding = decoder.take_rounding();
  op.flush = decoder.take("ftz");
  op.saturate = decoder.take("sat");
  bool is_satfinite = decoder.take("satfinite");
  op.count = decoder.take("relu") ? 2 : 1;
  Type result = decoder.expect_type(), type = decoder.expect_type();
  op.form = make_form(result, type, whole);
  bool is_byte = result == Type::E4M3x2 || result == Type::E5M2x2;
  if (is_satfinite != is_byte && is_satfinite) return decoder.unsupported_opcode();
  if (is_pair(result) || is_pair(type)) return decode_pair(decoder, op, result, type);
  if (op.count == 2 || !decoder.expect_operands(2)) return decoder.unsupported_opcode();
  op.d = decoder.wide_target(decoder.operand(0), result);
  op.a = decoder.wide_source(decoder.operand(1), type);
  op.execute = choose(op, result, type);
  if (!op.execute) return decoder.unsupported_opcode();
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {{"cvt", decode_cvt}};

} // namespace

std::span<const OpcodeDecoder> convert_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
