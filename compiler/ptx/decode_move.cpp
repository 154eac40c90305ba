// Moves: registers, constants, addresses, vectors in words; addresses between spaces.
#include "compiler/ptx/decoder.h"
#include "compiler/ptx/lanewise.h"

namespace firn::ptx {
namespace {

void copy(Warp& warp, const Op& op, uint32_t mask) {
  uint64_t* d = warp.row(op.d);
  const uint64_t* a = warp.row(op.a);
  each_lane(mask, [&](int lane) { d[lane] = a[lane]; });
}

void copy_predicate(Warp& warp, const Op& op, uint32_t mask) {
  warp.mask_row(op.d) = (warp.mask_row(op.d) & ~mask) | (warp.mask_row(op.a) & mask);
}

// d = the elements in the list, the first in the low bits; `bytes` each.
void pack(Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t* list = &warp.kernel_lists()[op.list];
  uint64_t keep = op.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (op.bytes * 8)) - 1;
  each_lane(mask, [&](int lane) {
    uint64_t word = 0;
    for (int i = 0; i < op.count; ++i) word |= (warp.row(list[i])[lane] & keep) << (8 * op.bytes * i);
    warp.row(op.d)[lane] = word;
  });
}

void unpack(Warp& warp, const Op& op, uint32_t mask) {
  const uint32_t* list = &warp.kernel_lists()[op.list];
  each_lane(mask, [&](int lane) {
    uint64_t word = warp.row(op.a)[lane];
    for (int i = 0; i < op.count; ++i) warp.row(list[i])[lane] = word >> (8 * op.bytes * i);
  });
}

void decode_pack(Decoder& decoder, Type type, const Operand& vector, bool is_pack) {
  auto count = static_cast<int>(vector.elements.size());
  if (count == 0 || size_of(type) % count != 0 || count > 4) return decoder.unsupported_opcode();
  Op op = decoder.begin(OpClass::Move);
  op.bytes = static_cast<uint8_t>(size_of(type) / count);
  op.count = static_cast<uint8_t>(count);
  Type element = op.bytes == 1 ? Type::B8 : op.bytes == 2 ? Type::B16 : Type::B32;
  std::vector<uint32_t> rows;
  for (const Operand& part : vector.elements)
    rows.push_back(is_pack ? decoder.wide_source(part, element) : decoder.wide_target(part, element));
  op.list = decoder.add_list(rows);
  if (is_pack)
    op.d = decoder.target(size_t{0}, type);
  else
    op.a = decoder.source(1, type);
  op.execute = is_pack ? pack : unpack;
  decoder.emit(op);
}

bool decode_clock(Decoder& decoder, const Operand& source) {
  if (source.kind != Operand::Kind::Symbol) return false;
  if (source.name != "%clock" && source.name != "%clock64" && source.name != "%clock_hi" &&
      source.name != "%globaltimer" && source.name != "%globaltimer_lo")
    return false;
  Op op = decoder.begin(OpClass::Move);
  op.d = decoder.target(size_t{0},
                        source.name == "%clock64" || source.name == "%globaltimer" ? Type::U64 : Type::U32);
  op.execute = clock_op();
  decoder.emit(op);
  return true;
}

void decode_mov(Decoder& decoder) {
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(2)) return;
  const Operand &to = decoder.operand(0), &from = decoder.operand(1);
  if (to.kind == Operand::Kind::Vector) return decode_pack(decoder, type, to, false);
  if (from.kind == Operand::Kind::Vector) return decode_pack(decoder, type, from, true);
  if (decode_clock(decoder, from)) return;
  Op op = decoder.begin(OpClass::Move);
  op.d = decoder.target(to, type);
  op.a = decoder.source(from, type);
  op.execute = type == Type::Pred ? copy_predicate : copy;
  decoder.emit(op);
}

std::optional<Space> take_space(Decoder& decoder) {
  if (decoder.take("global")) return Space::Global;
  if (decoder.take("shared") || decoder.take("shared::cta")) return Space::Shared;
  if (decoder.take("local")) return Space::Local;
  if (decoder.take("const")) return Space::Const;
  if (decoder.take("param") || decoder.take("param::entry")) return Space::Param;
  return std::nullopt;
}

uint64_t window_of(Space space) {
  return space == Space::Shared  ? kSharedWindow
         : space == Space::Local ? kLocalWindow
         : space == Space::Param ? kParamWindow
                                 : 0;
}

void add_window(Warp& warp, const Op& op, uint32_t mask) {
  each_lane(mask,
            [&](int lane) { warp.row(op.d)[lane] = warp.row(op.a)[lane] + static_cast<uint64_t>(op.value); });
}

void decode_cvta(Decoder& decoder) {
  bool is_back = decoder.take("to");
  auto space = take_space(decoder);
  Type type = decoder.expect_type();
  if (!space || size_of(type) != 8) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(2)) return;
  Op op = decoder.begin(OpClass::Move);
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  uint64_t window = window_of(*space);
  // Variables of calls lie in local memory, although their space is param.
  if (*space == Space::Param && decoder.operand(1).kind == Operand::Kind::Symbol) {
    auto place = decoder.find(decoder.operand(1).name);
    if (place) window = window_of(place->space);
  }
  op.value = static_cast<int64_t>(is_back ? 0 - window : window);
  op.execute = add_window;
  decoder.emit(op);
}

void test_space(Warp& warp, const Op& op, uint32_t mask) {
  uint32_t result = 0;
  each_lane(mask, [&](int lane) {
    uint64_t address = warp.row(op.a)[lane];
    Space space = Space::Global;
    for (Space of : {Space::Param, Space::Shared, Space::Local})
      if (address >= window_of(of) && address - window_of(of) < 0x1000'0000'0000) space = of;
    result |= static_cast<uint32_t>(space == op.space) << lane;
  });
  warp.mask_row(op.d) = (warp.mask_row(op.d) & ~mask) | result;
}

void decode_isspacep(Decoder& decoder) {
  auto space = take_space(decoder);
  if (!space || *space == Space::Const) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(2)) return;
  Op op = decoder.begin(OpClass::Move);
  op.space = *space;
  op.d = decoder.target(size_t{0}, Type::Pred);
  op.a = decoder.source(1, Type::U64);
  op.execute = test_space;
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"mov", decode_mov}, {"cvta", decode_cvta}, {"isspacep", decode_isspacep}};

} // namespace

std::span<const OpcodeDecoder> move_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
