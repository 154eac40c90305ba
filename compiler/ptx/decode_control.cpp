// Branches, calls, ends, barriers.
#include "compiler/ptx/decoder.h"

namespace firn::ptx {
namespace {

void decode_bra(Decoder& decoder) {
  decoder.take("uni");
  if (!decoder.expect_operands(1)) return;
  if (decoder.operand(0).kind != Operand::Kind::Symbol)
    return decoder.unsupported("a branch to other than a label");
  decoder.branch(decoder.operand(0).name);
}

void decode_call(Decoder& decoder) {
  decoder.take("uni");
  if (!decoder.expect_operands(1, 3)) return;
  std::span<const Operand> results, arguments;
  size_t at = 0;
  if (decoder.operand(0).kind == Operand::Kind::Group) results = decoder.operand(at++).elements;
  if (at >= decoder.operands() || decoder.operand(at).kind != Operand::Kind::Symbol)
    return decoder.unsupported("a call of other than a function by its name");
  std::string name = decoder.operand(at++).name;
  if (at < decoder.operands() && decoder.operand(at).kind == Operand::Kind::Group)
    arguments = decoder.operand(at++).elements;
  if (at != decoder.operands()) return decoder.unsupported("a call by prototype");
  decoder.call(name, results, arguments);
}

void decode_ret(Decoder& decoder) {
  decoder.take("uni");
  decoder.return_from_function();
}

void emit_plain(Decoder& decoder, Execute execute) {
  Op op = decoder.begin(OpClass::Control);
  op.execute = execute;
  decoder.emit(op);
}

void decode_exit(Decoder& decoder) {
  emit_plain(decoder, exit_op());
}
void decode_trap(Decoder& decoder) {
  emit_plain(decoder, trap_op());
}

void decode_nanosleep(Decoder& decoder) {
  decoder.expect_type();
  emit_plain(decoder, no_op());
}

void decode_warp_sync(Decoder& decoder) {
  if (!decoder.take("sync") || !decoder.expect_operands(1)) return decoder.unsupported_opcode();
  Op op = decoder.begin(OpClass::WarpWide);
  op.a = decoder.source(size_t{0}, Type::B32);
  op.execute = warp_sync_op();
  decoder.emit(op);
}

BarrierForm take_form(Decoder& decoder, bool& is_known) {
  is_known = true;
  if (decoder.take("sync")) return BarrierForm::Sync;
  if (decoder.take("arrive")) return BarrierForm::Arrive;
  is_known = decoder.take("red");
  if (decoder.take("popc")) return BarrierForm::Popc;
  if (decoder.take("and")) return BarrierForm::And;
  is_known &= decoder.take("or");
  return BarrierForm::Or;
}

// bar is barrier.aligned: all lanes of a warp come to the same instruction.
void decode_barrier(Decoder& decoder) {
  if (decoder.take("warp")) return decode_warp_sync(decoder);
  decoder.take("cta");
  Op op = decoder.begin(OpClass::Control);
  bool is_known = false;
  BarrierForm form = take_form(decoder, is_known);
  if (!is_known) return decoder.unsupported_opcode();
  op.form = static_cast<int32_t>(form);
  bool is_aligned = decoder.take("aligned") || decoder.opcode() == "bar";
  op.count = is_aligned ? 1 : 0;
  size_t at = 0;
  bool reduces = form >= BarrierForm::Popc;
  if (reduces) {
    Type type = decoder.expect_type();
    if (!decoder.expect_operands(3, 4)) return;
    op.d = decoder.target(at++, type);
    op.c = decoder.source(decoder.operands() - 1, Type::Pred);
  }
  size_t numbers = decoder.operands() - (reduces ? 2 : 0);
  if (numbers < 1 || numbers > 2 || (form == BarrierForm::Arrive && numbers != 2))
    return decoder.fail("'" + decoder.words() + "' with " + std::to_string(decoder.operands()) + " operands");
  op.a = decoder.source(at++, Type::U32);
  op.b = numbers == 2 ? decoder.source(at, Type::U32) : decoder.constant(0);
  op.execute = barrier_op();
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"bra", decode_bra},     {"call", decode_call},       {"ret", decode_ret},
    {"exit", decode_exit},   {"trap", decode_trap},       {"brkpt", decode_trap},
    {"bar", decode_barrier}, {"barrier", decode_barrier}, {"nanosleep", decode_nanosleep},
};

} // namespace

std::span<const OpcodeDecoder> control_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
