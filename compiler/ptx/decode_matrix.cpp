// mma.sync, ldmatrix and stmatrix.
//
// The list of a product holds m, n, k, the types of D, A, B, C, the numbers of their registers, then the
// rows.
#include "compiler/ptx/decoder.h"

#include <charconv>

namespace firn::ptx {
namespace {

// "m16n8k16" as three numbers.
bool parse_shape(std::string_view word, MatrixShape& shape) {
  int* numbers[] = {&shape.m, &shape.n, &shape.k};
  for (int i = 0; i < 3; ++i) {
    if (word.empty() || word[0] != "mnk"[i]) return false;
    auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), *numbers[i]);
    if (error != std::errc()) return false;
    word.remove_prefix(static_cast<size_t>(end - word.data()));
  }
  return word.empty();
}

bool take_shape(Decoder& decoder, MatrixShape& shape) {
  for (const char* word : {"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4", "m8n8k16"})
    if (decoder.take(word)) return parse_shape(word, shape);
  return false;
}

// Registers of a factor with `outer` rows: every register holds 32 bits of 32 lanes, or one f64.
int factor_registers(int outer, int k, Type type) {
  int per_register = type == Type::F64 ? 1 : 4 / size_of(type);
  return outer * k / 32 / per_register;
}

int result_registers(int m, Type type) {
  return type == Type::F16 ? m / 8 : m / 4;
}

bool is_known(const MatrixShape& s) {
  bool has_integers = s.a == Type::S8 || s.a == Type::U8;
  if (has_integers)
    return (s.b == Type::S8 || s.b == Type::U8) && s.d == Type::S32 && s.c == Type::S32 &&
           (s.k == 16 || s.k == 32) && !(s.m == 8 && s.k != 16);
  if (s.a == Type::F64) return s.b == Type::F64 && s.c == Type::F64 && s.d == Type::F64 && s.k <= 16;
  if (s.m != 16) return false;
  bool has_f32 = s.d == Type::F32 && s.c == Type::F32;
  if (s.a == Type::TF32) return s.b == s.a && has_f32 && (s.k == 4 || s.k == 8);
  if (s.a == Type::BF16) return s.b == s.a && has_f32 && (s.k == 8 || s.k == 16);
  if (s.a == Type::E4M3 || s.a == Type::E5M2)
    return (s.b == Type::E4M3 || s.b == Type::E5M2) && has_f32 && s.k == 32;
  bool has_f16 = s.d == Type::F16 && s.c == Type::F16;
  return s.a == Type::F16 && s.b == s.a && (has_f32 || has_f16) && (s.k == 8 || s.k == 16);
}

// Rows of a vector operand; a single register counts as a vector of one.
std::vector<uint32_t> rows_of(Decoder& decoder, size_t i, int count, Type type, bool is_result) {
  const Operand& operand = decoder.operand(i);
  Type word = type == Type::F64 ? Type::F64 : Type::B32;
  std::vector<uint32_t> rows;
  auto add = [&](const Operand& part) {
    rows.push_back(is_result ? decoder.target(part, word) : decoder.source(part, word));
  };
  if (operand.kind == Operand::Kind::Vector)
    for (const Operand& part : operand.elements) add(part);
  else
    add(operand);
  if (static_cast<int>(rows.size()) != count)
    decoder.fail("operand " + std::to_string(i) + " of '" + decoder.words() + "' has " +
                 std::to_string(rows.size()) + " registers, wanted " + std::to_string(count));
  return rows;
}

void decode_mma(Decoder& decoder) {
  Op op = decoder.begin(OpClass::Matrix);
  MatrixShape shape{};
  if (!decoder.take("sync") || !decoder.take("aligned") || !take_shape(decoder, shape) ||
      !decoder.take("row") || !decoder.take("col"))
    return decoder.unsupported_opcode();
  op.saturate = decoder.take("satfinite");
  shape.d = decoder.expect_type();
  shape.a = decoder.expect_type();
  shape.b = decoder.expect_type();
  shape.c = decoder.expect_type();
  if (!decoder.ok() || !is_known(shape)) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(4)) return;
  int counts[] = {result_registers(shape.m, shape.d), factor_registers(shape.m, shape.k, shape.a),
                  factor_registers(shape.n, shape.k, shape.b), result_registers(shape.m, shape.c)};
  Type types[] = {shape.d, shape.a, shape.b, shape.c};
  std::vector<uint32_t> list = {static_cast<uint32_t>(shape.m), static_cast<uint32_t>(shape.n),
                                static_cast<uint32_t>(shape.k)};
  for (Type type : types) list.push_back(static_cast<uint32_t>(type));
  for (int count : counts) list.push_back(static_cast<uint32_t>(count));
  for (size_t i = 0; i < 4; ++i)
    for (uint32_t row : rows_of(decoder, i, counts[i], types[i], i == 0)) list.push_back(row);
  op.list = decoder.add_list(list);
  op.execute = matrix_op();
  decoder.emit(op);
}

void decode_rows(Decoder& decoder, bool is_load) {
  Op op = decoder.begin(OpClass::Matrix);
  bool is_known =
      decoder.take("sync") && decoder.take("aligned") && decoder.take("m8n8") && decoder.take("b16");
  op.count = decoder.take("x1") ? 1 : decoder.take("x2") ? 2 : decoder.take("x4") ? 4 : 0;
  op.form = decoder.take("trans");
  is_known &= op.count != 0;
  bool is_shared = decoder.take("shared") || decoder.take("shared::cta");
  if (!is_known) return decoder.unsupported_opcode();
  if (!decoder.expect_operands(2)) return;
  op.space = is_shared ? Space::Shared : Space::Generic;
  decoder.address(decoder.operand(is_load ? 1 : 0), op);
  decoder.note_access(Space::Shared, 16);
  op.list = decoder.add_list(rows_of(decoder, is_load ? 0 : 1, op.count, Type::B32, is_load));
  op.execute = is_load ? load_matrix_op() : store_matrix_op();
  decoder.emit(op);
}

void decode_ldmatrix(Decoder& decoder) {
  decode_rows(decoder, true);
}
void decode_stmatrix(Decoder& decoder) {
  decode_rows(decoder, false);
}

constexpr OpcodeDecoder kDecoders[] = {
    {"mma", decode_mma}, {"ldmatrix", decode_ldmatrix}, {"stmatrix", decode_stmatrix}};

} // namespace

std::span<const OpcodeDecoder> matrix_decoders() {
  return kDecoders;
}

} // namespace firn::ptx
