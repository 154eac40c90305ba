// Arithmetic on integers: wrapping, saturating, high and wide products, bytes in words.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

#include <limits>
#include <type_traits>

namespace firn::ptx {
namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;

// Calls body with a value of the C++ type of an integer type.
template <class F> Execute for_integer(Type type, F&& body) {
  switch (type) {
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

template <class T> T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T> T high_mul(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (sizeof(T) * 8));
}

Execute saturating(std::string_view opcode) {
  auto limit = [](int64_t value) {
    return static_cast<int32_t>(
        std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  };
  using Limit = decltype(limit);
  if (opcode == "add") return two<int32_t>([](int32_t a, int32_t b) { return Limit{}(int64_t{a} + b); });
  return two<int32_t>([](int32_t a, int32_t b) { return Limit{}(int64_t{a} - b); });
}

// Division by zero gives all ones, the remainder the dividend; the least integer divides by -1 to itself.
template <class T> T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}

template <class T> T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

Execute binary(std::string_view opcode, Type type) {
  return for_integer(type, [&](auto zero) -> Execute {
    using T = decltype(zero);
    if (opcode == "add")
      return two<T>(
          [](T a, T b) { return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b)); });
    if (opcode == "sub")
      return two<T>(
          [](T a, T b) { return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)); });
    if (opcode == "min") return two<T>([](T a, T b) { return std::min(a, b); });
    if (opcode == "max") return two<T>([](T a, T b) { return std::max(a, b); });
    if (opcode == "div") return two<T>([](T a, T b) { return quotient(a, b); });
    if (opcode == "rem") return two<T>([](T a, T b) { return remainder(a, b); });
    return nullptr;
  });
}

Execute unary(std::string_view opcode, Type type) {
  return for_integer(type, [&](auto zero) -> Execute {
    using T = decltype(zero);
    if (opcode == "abs")
      return one<T>([](T a) { return a < 0 ? static_cast<T>(0 - static_cast<Unsigned<T>>(a)) : a; });
    if (opcode == "neg") return one<T>([](T a) { return static_cast<T>(0 - static_cast<Unsigned<T>>(a)); });
    return nullptr;
  });
}

template <class F> Execute for_wide(Type type, F&& body) {
  switch (type) {
  case Type::U16: return body(uint16_t{}, uint32_t{});
  case Type::S16: return body(int16_t{}, int32_t{});
  case Type::U32: return body(uint32_t{}, uint64_t{});
  case Type::S32: return body(int32_t{}, int64_t{});
  default: return nullptr;
  }
}

Execute product(bool is_high, Type type) {
  return for_integer(type, [&](auto zero) -> Execute {
    using T = decltype(zero);
    if (is_high) return two<T>([](T a, T b) { return high_mul(a, b); });
    return two<T>([](T a, T b) { return wrap_mul(a, b); });
  });
}

Execute product_sum(bool is_high, Type type) {
  return for_integer(type, [&](auto zero) -> Execute {
    using T = decltype(zero);
    if (is_high)
      return three<T>([](T a, T b, T c) {
        return static_cast<T>(static_cast<Unsigned<T>>(high_mul(a, b)) + static_cast<Unsigned<T>>(c));
      });
    return three<T>([](T a, T b, T c) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
    });
  });
}

Execute wide_product(bool has_sum, Type type) {
  return for_wide(type, [&](auto zero, auto wide) -> Execute {
    using T = decltype(zero);
    using W = decltype(wide);
    if (!has_sum)
      return two<T>([](T a, T b) {
        return static_cast<uint64_t>(static_cast<W>(a)) * static_cast<uint64_t>(static_cast<W>(b));
      });
    return three_wide<T, W>([](T a, T b, W c) {
      return static_cast<uint64_t>(static_cast<W>(a)) * static_cast<uint64_t>(static_cast<W>(b)) +
             static_cast<uint64_t>(c);
    });
  });
}

Type widened(Type type) {
  switch (type) {
  case Type::U16: return Type::U32;
  case Type::S16: return Type::S32;
  case Type::U32: return Type::U64;
  default: return Type::S64;
  }
}

void finish(Decoder& decoder, Op op, Type result, Type type, size_t sources, Type last) {
  if (!decoder.expect_operands(sources + 1)) return;
  op.d = decoder.target(size_t{0}, result);
  op.a = decoder.source(1, type);
  if (sources > 1) op.b = decoder.source(2, sources == 2 ? last : type);
  if (sources > 2) op.c = decoder.source(3, last);
  if (!op.execute) return decoder.unsupported_opcode();
  decoder.emit(op);
}

void decode_binary(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (is_float_like(type)) return decode_float_arithmetic(decoder, type);
  if (decoder.take("cc")) return decode_carry(decoder, type, false, true);
  Op op = decoder.begin(OpClass::Integer);
  bool saturates =
      type == Type::S32 && (decoder.opcode() == "add" || decoder.opcode() == "sub") && decoder.take("sat");
  op.execute = saturates ? saturating(decoder.opcode()) : binary(decoder.opcode(), type);
  finish(decoder, op, type, type, 2, type);
}

void decode_unary(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (is_float_like(type)) return decode_float_arithmetic(decoder, type);
  Op op = decoder.begin(OpClass::Integer);
  op.execute = is_signed(type) ? unary(decoder.opcode(), type) : nullptr;
  finish(decoder, op, type, type, 1, type);
}

void decode_product(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (is_float_like(type)) return decode_float_arithmetic(decoder, type);
  if (decoder.take("cc")) return decode_carry(decoder, type, false, true);
  bool has_sum = decoder.opcode() == "mad";
  Op op = decoder.begin(OpClass::Integer);
  size_t sources = has_sum ? 3 : 2;
  if (decoder.take("wide")) {
    op.execute = wide_product(has_sum, type);
    return finish(decoder, op, widened(type), type, sources, has_sum ? widened(type) : type);
  }
  bool is_high = decoder.take("hi");
  if (!is_high && !decoder.take("lo"))
    return decoder.fail("'" + decoder.words() + "' has none of lo, hi and wide");
  op.execute = has_sum ? product_sum(is_high, type) : product(is_high, type);
  finish(decoder, op, type, type, sources, type);
}

// mul24 and mad24 of the low 24 bits.
void decode_product24(Decoder& decoder) {
  Type type = decoder.expect_type();
  Op op = decoder.begin(OpClass::Integer);
  bool has_sum = decoder.opcode() == "mad24";
  if (!decoder.take("lo") || (type != Type::U32 && type != Type::S32)) return decoder.unsupported_opcode();
  // The low 32 bits of the product are the same for signed factors after their sign is extended.
  if (type == Type::U32)
    op.execute = has_sum
                     ? three<uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
                         return (a & 0xffffff) * (b & 0xffffff) + c;
                       })
                     : two<uint32_t>([](uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); });
  else
    op.execute = has_sum ? three<uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
      return static_cast<uint32_t>(static_cast<int32_t>(a << 8) >> 8) *
                 static_cast<uint32_t>(static_cast<int32_t>(b << 8) >> 8) +
             c;
    })
                         : two<uint32_t>([](uint32_t a, uint32_t b) {
                             return static_cast<uint32_t>(static_cast<int32_t>(a << 8) >> 8) *
                                    static_cast<uint32_t>(static_cast<int32_t>(b << 8) >> 8);
                           });
  finish(decoder, op, type, type, has_sum ? 3 : 2, type);
}

template <class T> int32_t part(uint32_t word, int i) {
  return static_cast<T>(word >> (8 * sizeof(T) * static_cast<size_t>(i)));
}

template <class A, class B> Execute dot4() {
  return three<uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 4; ++i) c += static_cast<uint32_t>(part<A>(a, i) * part<B>(b, i));
    return c;
  });
}

template <class A, class B, int kFirst> Execute dot2() {
  return three<uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 2; ++i)
      c += static_cast<uint32_t>(part<A>(a, i)) * static_cast<uint32_t>(part<B>(b, kFirst + i));
    return c;
  });
}

template <class A, class B> Execute dot2_half(bool is_high) {
  return is_high ? dot2<A, B, 2>() : dot2<A, B, 0>();
}

void decode_dot(Decoder& decoder) {
  bool is_dot4 = decoder.opcode() == "dp4a";
  bool is_high = !is_dot4 && decoder.take("hi");
  if (!is_dot4 && !is_high && !decoder.take("lo")) return decoder.unsupported_opcode();
  Type a = decoder.expect_type(), b = decoder.expect_type();
  if ((a != Type::S32 && a != Type::U32) || (b != Type::S32 && b != Type::U32))
    return decoder.unsupported_opcode();
  bool sa = a == Type::S32, sb = b == Type::S32;
  Op op = decoder.begin(OpClass::Integer);
  if (is_dot4)
    op.execute = sa ? (sb ? dot4<int8_t, int8_t>() : dot4<int8_t, uint8_t>())
                    : (sb ? dot4<uint8_t, int8_t>() : dot4<uint8_t, uint8_t>());
  else
    op.execute = sa ? (sb ? dot2_half<int16_t, int8_t>(is_high) : dot2_half<int16_t, uint8_t>(is_high))
                    : (sb ? dot2_half<uint16_t, int8_t>(is_high) : dot2_half<uint16_t, uint8_t>(is_high));
  finish(decoder, op, Type::B32, Type::B32, 3, Type::B32);
}

// Sum of absolute differences: c + |a - b|.
void decode_sad(Decoder& decoder) {
  Type type = decoder.expect_type();
  Op op = decoder.begin(OpClass::Integer);
  op.execute = for_integer(type, [](auto zero) -> Execute {
    using T = decltype(zero);
    return three<T>([](T a, T b, T c) {
      auto ua = static_cast<Unsigned<T>>(a), ub = static_cast<Unsigned<T>>(b);
      return static_cast<Unsigned<T>>(static_cast<Unsigned<T>>(c) +
                                      static_cast<Unsigned<T>>(a < b ? ub - ua : ua - ub));
    });
  });
  finish(decoder, op, type, type, 3, type);
}

void decode_with_carry(Decoder& decoder) {
  bool writes = decoder.take("cc");
  decode_carry(decoder, decoder.expect_type(), true, writes);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"add", decode_binary},      {"sub", decode_binary},      {"min", decode_binary},
    {"max", decode_binary},      {"div", decode_binary},      {"rem", decode_binary},
    {"abs", decode_unary},       {"neg", decode_unary},       {"mul", decode_product},
    {"mad", decode_product},     {"mul24", decode_product24}, {"mad24", decode_product24},
    {"dp4a", decode_dot},        {"dp2a", decode_dot},        {"sad", decode_sad},
    {"addc", decode_with_carry}, {"subc", decode_with_carry}, {"madc", decode_with_carry},
};

} // namespace

std::span<const OpcodeDecoder> integer_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
