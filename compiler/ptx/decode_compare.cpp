// Comparisons and choices: setp, set, selp, slct, testp, copysign.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

#include <array>

namespace firn::ptx {
namespace {

enum class Comparison { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

struct ComparisonName {
  std::string_view word;
  Comparison comparison;
};

constexpr ComparisonName kComparisons[] = {
    {"eq", Comparison::Eq},   {"ne", Comparison::Ne},   {"lt", Comparison::Lt},   {"le", Comparison::Le},
    {"gt", Comparison::Gt},   {"ge", Comparison::Ge},   {"lo", Comparison::Lt},   {"ls", Comparison::Le},
    {"hi", Comparison::Gt},   {"hs", Comparison::Ge},   {"equ", Comparison::Equ}, {"neu", Comparison::Neu},
    {"ltu", Comparison::Ltu}, {"leu", Comparison::Leu}, {"gtu", Comparison::Gtu}, {"geu", Comparison::Geu},
    {"num", Comparison::Num}, {"nan", Comparison::Nan},
};

template <Comparison kWhat, class T> bool compare(T a, T b) {
  bool unordered = a != a || b != b;
  switch (kWhat) {
  case Comparison::Eq: return a == b;
  case Comparison::Ne: return !unordered && a != b;
  case Comparison::Lt: return a < b;
  case Comparison::Le: return a <= b;
  case Comparison::Gt: return a > b;
  case Comparison::Ge: return a >= b;
  case Comparison::Equ: return unordered || a == b;
  case Comparison::Neu: return unordered || a != b;
  case Comparison::Ltu: return unordered || a < b;
  case Comparison::Leu: return unordered || a <= b;
  case Comparison::Gtu: return unordered || a > b;
  case Comparison::Geu: return unordered || a >= b;
  case Comparison::Num: return !unordered;
  case Comparison::Nan: return unordered;
  }
  return false;
}

template <const Format& kFormat, int kShift> struct NarrowReader {
  static double from(uint64_t bits) { return widen(static_cast<uint32_t>(bits >> kShift) & 0xffff, kFormat); }
};

constexpr uint32_t kNoOther = ~0u;

// d = (a ? b) op c, e = !(a ? b) op c. `form`: 0 none, 1 and, 2 or, 3 xor.
template <Comparison kWhat, class Reader> void set_predicates(Warp& warp, const Op& op, uint32_t mask) {
  const uint64_t *a = warp.row(op.a), *b = warp.row(op.b);
  uint32_t result = 0;
  each_lane(mask, [&](int lane) {
    auto x = Reader::from(a[lane]), y = Reader::from(b[lane]);
    if constexpr (std::is_same_v<decltype(x), float>)
      if (op.flush) x = F32Codec::flush(x), y = F32Codec::flush(y);
    result |= static_cast<uint32_t>(compare<kWhat>(x, y)) << lane;
  });
  uint32_t other = ~result;
  if (op.form != 0) {
    uint32_t c = warp.mask_row(op.c);
    auto combine = [&](uint32_t value) {
      return op.form == 1 ? value & c : op.form == 2 ? value | c : value ^ c;
    };
    result = combine(result);
    other = combine(other);
  }
  uint32_t& d = warp.mask_row(op.d);
  d = (d & ~mask) | (result & mask);
  if (op.e == kNoOther) return;
  uint32_t& e = warp.mask_row(op.e);
  e = (e & ~mask) | (other & mask);
}

template <class Reader> Execute comparison_of(Comparison comparison) {
  switch (comparison) {
  case Comparison::Eq: return set_predicates<Comparison::Eq, Reader>;
  case Comparison::Ne: return set_predicates<Comparison::Ne, Reader>;
  case Comparison::Lt: return set_predicates<Comparison::Lt, Reader>;
  case Comparison::Le: return set_predicates<Comparison::Le, Reader>;
  case Comparison::Gt: return set_predicates<Comparison::Gt, Reader>;
  case Comparison::Ge: return set_predicates<Comparison::Ge, Reader>;
  case Comparison::Equ: return set_predicates<Comparison::Equ, Reader>;
  case Comparison::Neu: return set_predicates<Comparison::Neu, Reader>;
  case Comparison::Ltu: return set_predicates<Comparison::Ltu, Reader>;
  case Comparison::Leu: return set_predicates<Comparison::Leu, Reader>;
  case Comparison::Gtu: return set_predicates<Comparison::Gtu, Reader>;
  case Comparison::Geu: return set_predicates<Comparison::Geu, Reader>;
  case Comparison::Num: return set_predicates<Comparison::Num, Reader>;
  case Comparison::Nan: return set_predicates<Comparison::Nan, Reader>;
  }
  return nullptr;
}

Execute comparison_op(Comparison comparison, Type type, bool upper_half = false) {
  switch (type) {
  case Type::U16:
  case Type::B16: return comparison_of<Bits<uint16_t>>(comparison);
  case Type::S16: return comparison_of<Bits<int16_t>>(comparison);
  case Type::U32:
  case Type::B32: return comparison_of<Bits<uint32_t>>(comparison);
  case Type::S32: return comparison_of<Bits<int32_t>>(comparison);
  case Type::U64:
  case Type::B64: return comparison_of<Bits<uint64_t>>(comparison);
  case Type::S64: return comparison_of<Bits<int64_t>>(comparison);
  case Type::F32: return comparison_of<Bits<float>>(comparison);
  case Type::F64: return comparison_of<Bits<double>>(comparison);
  case Type::F16: return comparison_of<NarrowReader<kF16, 0>>(comparison);
  case Type::BF16: return comparison_of<NarrowReader<kBF16, 0>>(comparison);
  case Type::F16x2:
    return upper_half ? comparison_of<NarrowReader<kF16, 16>>(comparison)
                      : comparison_of<NarrowReader<kF16, 0>>(comparison);
  case Type::BF16x2:
    return upper_half ? comparison_of<NarrowReader<kBF16, 16>>(comparison)
                      : comparison_of<NarrowReader<kBF16, 0>>(comparison);
  default: return nullptr;
  }
}

std::optional<Comparison> take_comparison(Decoder& decoder) {
  for (const ComparisonName& row : kComparisons)
    if (decoder.take(row.word)) return row.comparison;
  decoder.unsupported_opcode();
  return std::nullopt;
}

int take_combination(Decoder& decoder) {
  return decoder.take("and") ? 1 : decoder.take("or") ? 2 : decoder.take("xor") ? 3 : 0;
}

// Fills in what setp and set share: comparison, operands a, b and the predicate c.
bool begin_comparison(Decoder& decoder, Op& op, Comparison& comparison) {
  auto found = take_comparison(decoder);
  if (!found) return false;
  comparison = *found;
  op.form = take_combination(decoder);
  op.flush = decoder.take("ftz");
  op.e = kNoOther;
  return decoder.expect_operands(op.form == 0 ? 3 : 4);
}

void read_sources(Decoder& decoder, Op& op, Type type) {
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  if (op.form != 0) op.c = decoder.source(3, Type::Pred);
}

void decode_setp(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Integer);
  Comparison comparison;
  if (!begin_comparison(decoder, op, comparison)) return;
  Type type = decoder.expect_type();
  read_sources(decoder, op, type);
  op.execute = comparison_op(comparison, type);
  if (!op.execute) return decoder.unsupported_opcode();
  if (is_float_like(type)) op.op_class = OpClass::Float;
  bool is_pair = type == Type::F16x2 || type == Type::BF16x2;
  const Operand& result = decoder.operand(0);
  if (result.kind != Operand::Kind::Pair) {
    if (is_pair) return decoder.unsupported_opcode();
    op.d = decoder.target(result, Type::Pred);
    return decoder.emit(op);
  }
  op.d = decoder.target(result.elements[0], Type::Pred);
  uint32_t second = decoder.target(result.elements[1], Type::Pred);
  if (!is_pair) op.e = second;
  decoder.emit(op);
  if (!is_pair) return;
  op.d = second; // the second predicate of a pair is that of its upper half
  op.execute = comparison_op(comparison, type, true);
  decoder.emit(op);
}

// d = predicate a ? value : 0 in every lane.
void spread_predicate(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t a = warp.mask_row(op.a);
  each_lane(mask,
            [&](int lane) { warp.row(op.d)[lane] = a >> lane & 1 ? static_cast<uint64_t>(op.value) : 0; });
}

void decode_set(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Integer);
  Comparison comparison;
  if (!begin_comparison(decoder, op, comparison)) return;
  Type result = decoder.expect_type(), type = decoder.expect_type();
  bool is_pair = type == Type::F16x2 || type == Type::BF16x2;
  read_sources(decoder, op, type);
  op.execute = comparison_op(comparison, type);
  if (!op.execute || is_pair) return decoder.unsupported_opcode();
  Op spread = op;
  op.d = decoder.new_row();
  decoder.emit(op);
  spread.a = op.d;
  spread.d = decoder.target(size_t{0}, result);
  spread.value = result == Type::F32    ? 0x3f800000
                 : result == Type::F16  ? 0x3c00
                 : result == Type::BF16 ? 0x3f80
                                        : -1;
  spread.execute = spread_predicate;
  decoder.emit(spread);
}

void select(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t c = warp.mask_row(op.c);
  uint64_t* d = warp.row(op.d);
  const uint64_t *a = warp.row(op.a), *b = warp.row(op.b);
  each_lane(mask, [&](int lane) { d[lane] = c >> lane & 1 ? a[lane] : b[lane]; });
}

void decode_selp(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(4)) return;
  Op op = decoder.begin(OpClass::Move);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, Type::Pred);
  op.execute = select;
  decoder.emit(op);
}

// d = c >= 0 ? a : b.
void decode_slct(Decoder& decoder) {
  bool flush = decoder.take("ftz");
  Type type = decoder.expect_type(), sign = decoder.expect_type();
  if (!decoder.expect_operands(4)) return;
  Op op = decoder.begin(OpClass::Move);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, sign);
  op.flush = flush;
  if (sign == Type::S32)
    op.execute =
        three_wide<uint64_t, int32_t>([](uint64_t a, uint64_t b, int32_t c) { return c >= 0 ? a : b; });
  else if (sign == Type::F32)
    op.execute = [](Warp& warp, const Op& op, uint32_t mask) {
      each_lane(mask, [&](int lane) {
        float c = F32Codec::from(warp.row(op.c)[lane]);
        if (op.flush) c = F32Codec::flush(c);
        warp.row(op.d)[lane] = c >= 0 ? warp.row(op.a)[lane] : warp.row(op.b)[lane];
      });
    };
  else
    return decoder.unsupported_opcode();
  decoder.emit(op);
}

enum class Test { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

template <Test kTest, class T> void test_lanes(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t result = 0;
  each_lane(mask, [&](int lane) {
    T a = Bits<T>::from(warp.row(op.a)[lane]);
    bool holds = kTest == Test::Finite       ? std::isfinite(a)
                 : kTest == Test::Infinite   ? std::isinf(a)
                 : kTest == Test::Number     ? !std::isnan(a)
                 : kTest == Test::NotANumber ? std::isnan(a)
                 : kTest == Test::Normal     ? std::isnormal(a)
                                             : std::fpclassify(a) == FP_SUBNORMAL;
    result |= static_cast<uint32_t>(holds) << lane;
  });
  uint32_t& d = warp.mask_row(op.d);
  d = (d & ~mask) | result;
}

template <Test kTest> Execute test_op(Type type) {
  return type == Type::F64 ? test_lanes<kTest, double> : test_lanes<kTest, float>;
}

void decode_testp(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(2)) return;
  Op op = decoder.begin(OpClass::Float);
  op.execute = decoder.take("finite")       ? test_op<Test::Finite>(type)
               : decoder.take("infinite")   ? test_op<Test::Infinite>(type)
               : decoder.take("number")     ? test_op<Test::Number>(type)
               : decoder.take("notanumber") ? test_op<Test::NotANumber>(type)
               : decoder.take("normal")     ? test_op<Test::Normal>(type)
               : decoder.take("subnormal")  ? test_op<Test::Subnormal>(type)
                                            : nullptr;
  if (!op.execute || !is_float(type) || size_of(type) < 4) return decoder.unsupported_opcode();
  op.d = decoder.target(size_t{0}, Type::Pred);
  op.a = decoder.source(1, type);
  decoder.emit(op);
}

// d = the magnitude of b with the sign of a.
void decode_copysign(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(3)) return;
  Op op = decoder.begin(OpClass::Float);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  constexpr uint64_t kSign64 = uint64_t{1} << 63, kSign32 = uint64_t{1} << 31;
  if (size_of(type) == 8)
    op.execute = two<uint64_t>([](uint64_t a, uint64_t b) { return (a & kSign64) | (b & ~kSign64); });
  else
    op.execute = two<uint64_t>([](uint64_t a, uint64_t b) { return (a & kSign32) | (b & (kSign32 - 1)); });
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"setp", decode_setp}, {"set", decode_set},     {"selp", decode_selp},
    {"slct", decode_slct}, {"testp", decode_testp}, {"copysign", decode_copysign},
};

} // namespace

std::span<const OpcodeDecoder> compare_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
