// Loads, stores, atomics and asynchronous copies.
#include "compiler/ptx/decoder.h"

#include <algorithm>

namespace firn::ptx {
namespace {

Space take_space(Decoder& decoder) {
  if (decoder.take("global")) return Space::Global;
  if (decoder.take("shared") || decoder.take("shared::cta")) return Space::Shared;
  if (decoder.take("local")) return Space::Local;
  if (decoder.take("const")) return Space::Const;
  if (decoder.take("param") || decoder.take("param::entry") || decoder.take("param::func"))
    return Space::Param;
  return Space::Generic;
}

// Hints for caches change nothing here.
void take_cache_hints(Decoder& decoder) {
  for (const char* word :
       {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged",
        "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B"})
    decoder.take(word);
}

void take_scope(Decoder& decoder) {
  for (const char* word : {"cta", "cluster", "gpu", "sys"}) decoder.take(word);
}

Access take_access(Decoder& decoder) {
  bool is_strong = false;
  for (const char* word : {"volatile", "relaxed", "acquire", "release"}) is_strong |= decoder.take(word);
  if (is_strong) take_scope(decoder);
  decoder.take("weak");
  return is_strong ? Access::Strong : Access::Weak;
}

int take_vector(Decoder& decoder) {
  return decoder.take("v2") ? 2 : decoder.take("v4") ? 4 : 1;
}

// Fills in the part that loads and stores share; false: refused.
bool begin_access(Decoder& decoder, Op& op, Type& type, const Operand& address, const Operand& data,
                  bool is_load) {
  op = decoder.begin(OpClass::Memory);
  op.space = take_space(decoder);
  op.access = take_access(decoder);
  if (is_load) decoder.take("nc");
  take_cache_hints(decoder);
  op.count = static_cast<uint8_t>(take_vector(decoder));
  type = decoder.expect_type();
  op.bytes = static_cast<uint8_t>(size_of(type));
  decoder.address(address, op);
  decoder.note_access(op.space, op.bytes * op.count);
  size_t elements = data.kind == Operand::Kind::Vector ? data.elements.size() : 1;
  if (elements != op.count || type == Type::Pred || op.bytes * op.count > 16)
    decoder.fail("'" + decoder.words() + "' with " + std::to_string(elements) + " elements");
  return decoder.ok();
}

void decode_ld(Decoder& decoder) {
  if (!decoder.expect_operands(2)) return;
  Op op;
  Type type;
  const Operand& data = decoder.operand(0);
  if (!begin_access(decoder, op, type, decoder.operand(1), data, true)) return;
  std::vector<uint32_t> rows;
  if (data.kind == Operand::Kind::Vector)
    for (const Operand& element : data.elements) rows.push_back(decoder.wide_target(element, type));
  else
    rows.push_back(decoder.wide_target(data, type));
  op.list = decoder.add_list(rows);
  op.execute = load_op(op.bytes, is_signed(type));
  decoder.emit(op);
}

void decode_st(Decoder& decoder) {
  if (!decoder.expect_operands(2)) return;
  Op op;
  Type type;
  const Operand& data = decoder.operand(1);
  if (!begin_access(decoder, op, type, decoder.operand(0), data, false)) return;
  std::vector<uint32_t> rows;
  if (data.kind == Operand::Kind::Vector)
    for (const Operand& element : data.elements) rows.push_back(decoder.wide_source(element, type));
  else
    rows.push_back(decoder.wide_source(data, type));
  op.list = decoder.add_list(rows);
  op.execute = store_op(op.bytes);
  decoder.emit(op);
}

std::optional<AtomicOp> take_atomic(Decoder& decoder) {
  constexpr std::pair<std::string_view, AtomicOp> kNames[] = {
      {"add", AtomicOp::Add}, {"min", AtomicOp::Min}, {"max", AtomicOp::Max},   {"inc", AtomicOp::Inc},
      {"dec", AtomicOp::Dec}, {"cas", AtomicOp::Cas}, {"exch", AtomicOp::Exch}, {"and", AtomicOp::And},
      {"or", AtomicOp::Or},   {"xor", AtomicOp::Xor},
  };
  for (auto [word, op] : kNames)
    if (decoder.take(word)) return op;
  return std::nullopt;
}

// atom has a result, red has none.
void decode_atomic(Decoder& decoder) {
  bool has_result = decoder.opcode() == "atom";
  Op op = decoder.begin(OpClass::Memory);
  op.space = take_space(decoder);
  take_access(decoder);
  decoder.take("acq_rel");
  take_scope(decoder);
  auto what = take_atomic(decoder);
  Type type = decoder.expect_type();
  if (is_float_like(type))
    return decoder.unsupported("'" + decoder.words() +
                               "' depends on the order of threads: floats are not added atomically");
  if (!what || !atomic_op(*what, type)) return decoder.unsupported_opcode();
  size_t first = has_result ? 1 : 0, values = *what == AtomicOp::Cas ? 2 : 1;
  if (!decoder.expect_operands(first + 1 + values)) return;
  op.access = Access::Atomic;
  op.bytes = static_cast<uint8_t>(size_of(type));
  op.form = has_result ? 0 : 1;
  if (has_result) op.d = decoder.target(size_t{0}, type);
  decoder.address(decoder.operand(first), op);
  decoder.note_access(op.space, op.bytes);
  Op filled = op;
  filled.b = filled.c = decoder.source(first + 1, type);
  if (values == 2) filled.c = decoder.source(first + 2, type);
  filled.execute = atomic_op(*what, type);
  decoder.emit(filled);
}

void decode_copy(Decoder& decoder) {
  decoder.take("ca") || decoder.take("cg");
  for (const char* word : {"L2::64B", "L2::128B", "L2::256B"}) decoder.take(word);
  if (!(decoder.take("shared") || decoder.take("shared::cta") || decoder.take("shared::cluster")) ||
      !decoder.take("global"))
    return decoder.unsupported_opcode();
  if (!decoder.expect_operands(3, 4)) return;
  const Operand& size = decoder.operand(2);
  if (size.kind != Operand::Kind::Integer || (size.value != 4 && size.value != 8 && size.value != 16))
    return decoder.fail("an asynchronous copy of other than 4, 8 or 16 bytes");
  Op from = decoder.begin(OpClass::Memory), op = from;
  from.space = Space::Global;
  decoder.address(decoder.operand(1), from);
  op.space = Space::Shared;
  decoder.address(decoder.operand(0), op);
  op.d = op.a; // the place in shared memory is row d + value, the source row a + form
  op.a = from.a;
  op.form = static_cast<int32_t>(from.value);
  if (op.form != from.value) return decoder.unsupported("an offset of more than 2 GiB");
  op.bytes = static_cast<uint8_t>(size.value);
  op.b = decoder.operands() == 4 ? decoder.source(3, Type::U32)
                                 : decoder.constant(static_cast<uint64_t>(size.value));
  decoder.note_access(Space::Shared, op.bytes);
  decoder.note_access(Space::Global, decoder.operands() == 4 ? 1 : op.bytes);
  op.execute = copy_async_op();
  decoder.emit(op);
}

void decode_copy_async(Decoder& decoder) {
  if (!decoder.take("async")) return decoder.unsupported_opcode();
  Op op = decoder.begin(OpClass::Memory);
  if (decoder.take("commit_group")) {
    op.execute = copy_commit_op();
  } else if (decoder.take("wait_all")) {
    op.execute = copy_wait_op();
    op.value = -1;
  } else if (decoder.take("wait_group")) {
    if (!decoder.expect_operands(1) || decoder.operand(0).kind != Operand::Kind::Integer)
      return decoder.unsupported_opcode();
    op.execute = copy_wait_op();
    op.value = decoder.operand(0).value;
  } else {
    return decode_copy(decoder);
  }
  decoder.emit(op);
}

// Prefetches are hints; a fence orders the strong accesses of its own thread, which happen in order here.
void decode_nothing(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Memory);
  for (const char* word : {"cta", "gl", "sys", "gpu", "sc", "acq_rel", "cluster"}) decoder.take(word);
  op.execute = no_op();
  decoder.emit(op);
}

void decode_prefetch(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Memory);
  take_space(decoder);
  for (const char* word : {"L1", "L2", "L2::evict_last", "L2::evict_normal"}) decoder.take(word);
  op.execute = no_op();
  decoder.emit(op);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"ld", decode_ld},
    {"ldu", decode_ld},
    {"st", decode_st},
    {"atom", decode_atomic},
    {"red", decode_atomic},
    {"cp", decode_copy_async},
    {"membar", decode_nothing},
    {"fence", decode_nothing},
    {"prefetch", decode_prefetch},
    {"prefetchu", decode_prefetch},
};

} // namespace

std::span<const OpcodeDecoder> memory_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
