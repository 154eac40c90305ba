// Logic, shifts and fields of bits, and logic on predicates.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

#include <bit>

namespace firn::ptx {
namespace {

void emit_bits(Decoder& decoder, Execute execute, Type result, std::initializer_list<Type> sources,
               int64_t value = 0) {
  if (!decoder.expect_operands(sources.size() + 1)) return;
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, result);
  uint32_t* rows[] = {&op.a, &op.b, &op.c};
  size_t i = 0;
  for (Type type : sources) {
    *rows[i] = decoder.source(i + 1, type);
    ++i;
  }
  op.execute = execute;
  op.value = value;
  if (!execute) return decoder.unsupported_opcode();
  decoder.emit(op);
}

// `kOp`: '&', '|', '^', '~' on masks of lanes.
template <char kOp> void predicate_logic(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t a = warp.mask_row(op.a), b = warp.mask_row(op.b);
  uint32_t result = kOp == '&' ? a & b : kOp == '|' ? a | b : kOp == '^' ? a ^ b : ~a;
  warp.mask_row(op.d) = (warp.mask_row(op.d) & ~mask) | (result & mask);
}

Execute word_logic(std::string_view opcode) {
  if (opcode == "and") return two<uint64_t>([](uint64_t a, uint64_t b) { return a & b; });
  if (opcode == "or") return two<uint64_t>([](uint64_t a, uint64_t b) { return a | b; });
  return two<uint64_t>([](uint64_t a, uint64_t b) { return a ^ b; });
}

void decode_logic(Decoder& decoder) {
  Type type = decoder.expect_type();
  std::string_view opcode = decoder.opcode();
  if (type == Type::Pred)
    return emit_bits(decoder,
                     opcode == "and"  ? predicate_logic<'&'>
                     : opcode == "or" ? predicate_logic<'|'>
                                      : predicate_logic<'^'>,
                     type, {type, type});
  if (!is_bits(type)) return decoder.unsupported_opcode();
  emit_bits(decoder, word_logic(opcode), type, {type, type});
}

void decode_not(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (type == Type::Pred) return emit_bits(decoder, negate_predicate_op(), type, {type});
  emit_bits(decoder, one<uint64_t>([](uint64_t a) { return ~a; }), type, {type});
}

template <class F> Execute by_width(Type type, F&& body) {
  switch (size_of(type)) {
  case 2: return body(uint16_t{});
  case 4: return body(uint32_t{});
  case 8: return body(uint64_t{});
  default: return nullptr;
  }
}

void decode_cnot(Decoder& decoder) {
  Type type = decoder.expect_type();
  emit_bits(decoder,
            by_width(type,
                     [](auto zero) {
                       using T = decltype(zero);
                       return one<T>([](T a) { return T{a == 0}; });
                     }),
            type, {type});
}

// Shifts by the width or more leave zeros, or copies of the sign.
Execute shift(bool is_left, Type type) {
  if (is_left)
    return by_width(type, [](auto zero) {
      using T = decltype(zero);
      return three_wide<T, uint32_t>(
          [](T a, T, uint32_t n) { return n < sizeof(T) * 8 ? static_cast<T>(a << n) : T{0}; });
    });
  if (is_signed(type))
    return by_width(type, [](auto zero) {
      using T = std::make_signed_t<decltype(zero)>;
      return three_wide<T, uint32_t>(
          [](T a, T, uint32_t n) { return static_cast<T>(a >> std::min<uint32_t>(n, sizeof(T) * 8 - 1)); });
    });
  return by_width(type, [](auto zero) {
    using T = decltype(zero);
    return three_wide<T, uint32_t>(
        [](T a, T, uint32_t n) { return n < sizeof(T) * 8 ? static_cast<T>(a >> n) : T{0}; });
  });
}

void decode_shift(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(3)) return;
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, type);
  op.a = op.b = decoder.source(1, type);
  op.c = decoder.source(2, Type::U32); // the amount has 32 bits, whatever is shifted
  op.execute = shift(decoder.opcode() == "shl", type);
  if (!op.execute) return decoder.unsupported_opcode();
  decoder.emit(op);
}

void funnel(Warp& warp, const Op& op, uint32_t mask) {
  bool is_left = op.form & 1, clamps = op.form & 2;
  each_lane(mask, [&](int lane) {
    uint64_t both = static_cast<uint32_t>(warp.row(op.a)[lane]) | warp.row(op.b)[lane] << 32;
    auto n = static_cast<uint32_t>(warp.row(op.c)[lane]);
    n = clamps ? std::min(n, 32u) : n & 31;
    warp.row(op.d)[lane] = static_cast<uint32_t>(is_left ? both << n >> 32 : both >> n);
  });
}

void decode_funnel(Decoder& decoder) {
  bool is_left = decoder.take("l");
  if (!is_left && !decoder.take("r")) return decoder.unsupported_opcode();
  bool clamps = decoder.take("clamp");
  if (!clamps && !decoder.take("wrap")) return decoder.unsupported_opcode();
  decoder.expect_type();
  if (!decoder.expect_operands(4)) return;
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, Type::B32);
  op.a = decoder.source(1, Type::B32);
  op.b = decoder.source(2, Type::B32);
  op.c = decoder.source(3, Type::B32);
  op.form = is_left | clamps << 1;
  op.execute = funnel;
  decoder.emit(op);
}

// Bit 4 a + 2 b + c of the table is the result for bits a, b, c.
void look_up_bits(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    auto a = static_cast<uint32_t>(warp.row(op.a)[lane]), b = static_cast<uint32_t>(warp.row(op.b)[lane]),
         c = static_cast<uint32_t>(warp.row(op.c)[lane]), result = 0u;
    for (int i = 0; i < 8; ++i)
      if (op.value >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    warp.row(op.d)[lane] = result;
  });
}

void decode_lop3(Decoder& decoder) {
  decoder.expect_type();
  if (!decoder.expect_operands(5)) return;
  if (decoder.operand(4).kind != Operand::Kind::Integer) return decoder.unsupported_opcode();
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, Type::B32);
  op.a = decoder.source(1, Type::B32);
  op.b = decoder.source(2, Type::B32);
  op.c = decoder.source(3, Type::B32);
  op.value = decoder.operand(4).value;
  op.execute = look_up_bits;
  decoder.emit(op);
}

// The field of `length` bits from `begin` on; signed fields are extended with their highest bit, or that of
// the operand where the field ends behind it.
template <class T> T extract(T a, uint32_t begin, uint32_t length) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  begin &= 0xff;
  length &= 0xff;
  using U = std::make_unsigned_t<T>;
  uint32_t last = std::min(begin + length - 1, kBits - 1);
  bool is_negative = std::is_signed_v<T> && length != 0 && (static_cast<U>(a) >> last & 1);
  U ones = is_negative ? static_cast<U>(~U{0}) : U{0};
  if (length == 0) return 0;
  U field = begin < kBits ? static_cast<U>(static_cast<U>(a) >> begin) : U{0};
  uint32_t known = begin < kBits ? std::min(length, kBits - begin) : 0;
  U keep = known >= kBits ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << known) - 1);
  return static_cast<T>((field & keep) | (ones & static_cast<U>(~keep)));
}

template <class T> void extract_lanes(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask, [&](int lane) {
    warp.row(op.d)[lane] = static_cast<uint64_t>(extract(static_cast<T>(warp.row(op.a)[lane]),
                                                         static_cast<uint32_t>(warp.row(op.b)[lane]),
                                                         static_cast<uint32_t>(warp.row(op.c)[lane])));
  });
}

void decode_extract(Decoder& decoder) {
  Type type = decoder.expect_type();
  Execute execute = type == Type::U32   ? extract_lanes<uint32_t>
                    : type == Type::S32 ? extract_lanes<int32_t>
                    : type == Type::U64 ? extract_lanes<uint64_t>
                    : type == Type::S64 ? extract_lanes<int64_t>
                                        : nullptr;
  emit_bits(decoder, execute, type, {type, Type::U32, Type::U32});
}

// d = b with the low bits of a in a field; rows: a, b, c = begin, e = length.
template <class T> void insert_lanes(Warp& warp, const Op& op, uint32_t mask) {
  constexpr uint32_t kBits = sizeof(T) * 8;
  each_lane(mask, [&](int lane) {
    uint32_t begin = warp.row(op.c)[lane] & 0xff, length = warp.row(op.e)[lane] & 0xff;
    T field = length >= kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    field = begin < kBits ? static_cast<T>(field << begin) : T{0};
    T a = begin < kBits ? static_cast<T>(static_cast<T>(warp.row(op.a)[lane]) << begin) : T{0};
    warp.row(op.d)[lane] = (a & field) | (static_cast<T>(warp.row(op.b)[lane]) & static_cast<T>(~field));
  });
}

void decode_insert(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(5)) return;
  Op op = decoder.begin(OpClass::Integer);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, Type::U32);
  op.e = decoder.source(4, Type::U32);
  op.execute = size_of(type) == 8 ? insert_lanes<uint64_t> : insert_lanes<uint32_t>;
  decoder.emit(op);
}

void decode_count(Decoder& decoder) {
  Type type = decoder.expect_type();
  bool is_clz = decoder.opcode() == "clz";
  Execute execute = by_width(type, [&](auto zero) {
    using T = decltype(zero);
    if (is_clz) return one<T>([](T a) { return static_cast<uint32_t>(std::countl_zero(a)); });
    return one<T>([](T a) { return static_cast<uint32_t>(std::popcount(a)); });
  });
  emit_bits(decoder, execute, Type::U32, {type});
}

template <class T> T reversed(T a) {
  T result = 0;
  for (size_t i = 0; i < sizeof(T) * 8; ++i)
    result |= static_cast<T>((a >> i & 1) << (sizeof(T) * 8 - 1 - i));
  return result;
}

void decode_reverse(Decoder& decoder) {
  Type type = decoder.expect_type();
  Execute execute = size_of(type) == 8 ? one<uint64_t>([](uint64_t a) { return reversed(a); })
                                       : one<uint32_t>([](uint32_t a) { return reversed(a); });
  emit_bits(decoder, execute, type, {type});
}

// The place of the highest bit that differs from the sign, or how far it has to be shifted to the top; -1:
// none.
template <class T, bool kShift> uint32_t highest(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = static_cast<U>(a < 0 ? ~a : a);
  if (bits == 0) return ~0u;
  auto zeros = static_cast<uint32_t>(std::countl_zero(bits));
  return kShift ? zeros : static_cast<uint32_t>(sizeof(T) * 8) - 1 - zeros;
}

template <class T> Execute highest_op(bool shift) {
  if (shift) return one<T>([](T a) { return highest<T, true>(a); });
  return one<T>([](T a) { return highest<T, false>(a); });
}

void decode_find(Decoder& decoder) {
  bool shift = decoder.take("shiftamt");
  Type type = decoder.expect_type();
  Execute execute = type == Type::U32   ? highest_op<uint32_t>(shift)
                    : type == Type::S32 ? highest_op<int32_t>(shift)
                    : type == Type::U64 ? highest_op<uint64_t>(shift)
                                        : highest_op<int64_t>(shift);
  emit_bits(decoder, execute, Type::U32, {type});
}

// Bytes of b:a by the four nibbles of c; a nibble's high bit copies the byte's sign.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t bytes = a | uint64_t{b} << 32;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t selector = c >> (4 * i) & 15;
    auto byte = static_cast<uint8_t>(bytes >> (8 * (selector & 7)));
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t{byte} << (8 * i);
  }
  return result;
}

// Selectors of the modes of prmt by the low two bits of c.
constexpr uint16_t kForward[] = {0x3210, 0x4321, 0x5432, 0x6543},
                   kBackward[] = {0x5670, 0x6701, 0x7012, 0x0123},
                   kReplicate[] = {0x0000, 0x1111, 0x2222, 0x3333},
                   kLeft[] = {0x3210, 0x3211, 0x3222, 0x3333}, kRight[] = {0x0000, 0x1110, 0x2210, 0x3210},
                   kHalf[] = {0x1010, 0x3232, 0x1010, 0x3232};

template <const uint16_t* kSelectors> Execute permute_by() {
  return three<uint32_t>(
      [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, kSelectors[c & 3]); });
}

void decode_permute(Decoder& decoder) {
  decoder.expect_type();
  Execute execute =
      decoder.take("f4e")   ? permute_by<kForward>()
      : decoder.take("b4e") ? permute_by<kBackward>()
      : decoder.take("rc8") ? permute_by<kReplicate>()
      : decoder.take("ecl") ? permute_by<kLeft>()
      : decoder.take("ecr") ? permute_by<kRight>()
      : decoder.take("rc16")
          ? permute_by<kHalf>()
          : three<uint32_t>([](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); });
  emit_bits(decoder, execute, Type::B32, {Type::B32, Type::B32, Type::B32});
}

constexpr OpcodeDecoder kDecoders[] = {
    {"and", decode_logic},  {"or", decode_logic},     {"xor", decode_logic},  {"not", decode_not},
    {"cnot", decode_cnot},  {"shl", decode_shift},    {"shr", decode_shift},  {"shf", decode_funnel},
    {"lop3", decode_lop3},  {"bfe", decode_extract},  {"bfi", decode_insert}, {"clz", decode_count},
    {"popc", decode_count}, {"brev", decode_reverse}, {"bfind", decode_find}, {"prmt", decode_permute},
};

} // namespace

Execute negate_predicate_op() {
  return predicate_logic<'~'>;
}
std::span<const OpcodeDecoder> bit_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
