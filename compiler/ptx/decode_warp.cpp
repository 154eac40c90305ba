// Shuffles, votes, matches, reductions of warps.
#include "compiler/ptx/decoder.h"

namespace firn::ptx {
namespace {

// The first operand, and the predicate behind '|' if there is one.
void read_results(Decoder& decoder, Op& op, Type type) {
  const Operand& result = decoder.operand(0);
  bool has_predicate = result.kind == Operand::Kind::Pair;
  op.d = decoder.target(has_predicate ? result.elements[0] : result, type);
  if (has_predicate) op.e = decoder.target(result.elements[1], Type::Pred);
  op.form = has_predicate;
}

void decode_shfl(Decoder& decoder) {
  Op op = decoder.begin(OpClass::WarpWide);
  if (!decoder.take("sync")) return decoder.unsupported_opcode();
  op.execute = decoder.take("up")     ? shuffle_op(ShuffleMode::Up)
               : decoder.take("down") ? shuffle_op(ShuffleMode::Down)
               : decoder.take("bfly") ? shuffle_op(ShuffleMode::Bfly)
               : decoder.take("idx")  ? shuffle_op(ShuffleMode::Idx)
                                      : nullptr;
  decoder.expect_type();
  if (!op.execute) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(5)) return;
  read_results(decoder, op, Type::B32);
  op.a = decoder.source(1, Type::B32);
  op.b = decoder.source(2, Type::B32);
  op.c = decoder.source(3, Type::B32);
  uint32_t mask[] = {decoder.source(4, Type::B32)};
  op.list = decoder.add_list(mask);
  decoder.emit(op);
}

void decode_vote(Decoder& decoder) {
  Op op = decoder.begin(OpClass::WarpWide);
  if (!decoder.take("sync")) return decoder.unsupported_opcode();
  bool is_ballot = decoder.take("ballot");
  op.execute = is_ballot             ? vote_op(VoteMode::Ballot)
               : decoder.take("all") ? vote_op(VoteMode::All)
               : decoder.take("any") ? vote_op(VoteMode::Any)
               : decoder.take("uni") ? vote_op(VoteMode::Uni)
                                     : nullptr;
  decoder.expect_type();
  if (!op.execute) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(3)) return;
  op.d = decoder.target(size_t{0}, is_ballot ? Type::B32 : Type::Pred);
  op.a = decoder.source(1, Type::Pred);
  op.b = decoder.source(2, Type::B32);
  decoder.emit(op);
}

void decode_match(Decoder& decoder) {
  Op op = decoder.begin(OpClass::WarpWide);
  if (!decoder.take("sync")) return decoder.unsupported_opcode();
  bool is_all = decoder.take("all");
  if (!is_all && !decoder.take("any")) return decoder.unsupported_opcode();
  Type type = decoder.expect_type();
  if (!decoder.expect_operands(3)) return;
  read_results(decoder, op, Type::B32);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, Type::B32);
  op.execute = match_op(is_all ? MatchMode::All : MatchMode::Any, size_of(type) == 8);
  decoder.emit(op);
}

void decode_redux(Decoder& decoder) {
  Op op = decoder.begin(OpClass::WarpWide);
  if (!decoder.take("sync")) return decoder.unsupported_opcode();
  std::optional<AtomicOp> what = decoder.take("add")   ? std::optional(AtomicOp::Add)
                                 : decoder.take("min") ? std::optional(AtomicOp::Min)
                                 : decoder.take("max") ? std::optional(AtomicOp::Max)
                                 : decoder.take("and") ? std::optional(AtomicOp::And)
                                 : decoder.take("or")  ? std::optional(AtomicOp::Or)
                                 : decoder.take("xor") ? std::optional(AtomicOp::Xor)
                                                       : std::nullopt;
  Type type = decoder.expect_type();
  if (!what || size_of(type) != 4 || is_float(type)) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(3)) return;
  op.d = decoder.target(size_t{0}, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, Type::B32);
  op.execute = reduce_op(*what, is_signed(type));
  decoder.emit(op);
}

void decode_activemask(Decoder& decoder) {
  decoder.expect_type();
  if (!decoder.expect_operands(1)) return;
  Op op = decoder.begin(OpClass::WarpWide);
  op.d = decoder.target(size_t{0}, Type::B32);
  op.execute = active_mask_op();
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"shfl", decode_shfl},
    {"vote", decode_vote},
    {"match", decode_match},
    {"redux", decode_redux},
    {"activemask", decode_activemask},
};

} // namespace

std::span<const OpcodeDecoder> warp_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
