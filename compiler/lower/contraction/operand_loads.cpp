// Factors as they lie in memory, and the ops of their products.
#include "compiler/lower/contraction/operand_loads.h"
#include "compiler/lower/machine_types.h"

namespace firn::lower {
namespace {

using kernel::Builder;
using kernel::OpKind;
using kernel::Register;
using kernel::Scalar;

// A factor of a product of single steps: integers are multiplied as i32, or as the floats they are added to.
Register widened(Builder& b, const plan::MacInstruction& product, DType dtype, Register factor) {
  if (!is_integer(dtype)) return factor;
  if (bit_width(dtype) < 32)
    factor = b.cast(is_signed(dtype) ? OpKind::SExt : OpKind::ZExt, factor, Scalar::I32);
  return is_float(product.accumulator) ? b.cast(OpKind::SIToF, factor, Scalar::F32) : factor;
}

// Integers of a pair, of which the other may be bytes, as i16.
Register widened_to_i16(Builder& b, DType dtype, Register operands) {
  if (!is_integer(dtype) || bit_width(dtype) != 8) return operands;
  return b.cast(is_signed(dtype) ? OpKind::SExt : OpKind::ZExt, operands, Scalar::I16);
}

// `count` steps in the low parts of a word, `bits` of each.
Register join_steps(Builder& b, const ScalarOperands& operands, int count, int bits) {
  Register word;
  for (int step = 0; step < count; ++step) {
    Register factor = b.load({memory_scalar(operands.dtype), 1}, operands.buffer, operands.place(step));
    if (is_float(operands.dtype)) factor = b.cast(OpKind::Bitcast, factor, Scalar::I16);
    if (bits == 16) factor = widened_to_i16(b, operands.dtype, factor);
    factor = b.cast(OpKind::ZExt, factor, Scalar::I32);
    if (step > 0)
      factor = b.binary(OpKind::Shl, factor, b.constant_int({Scalar::I32, 1}, int64_t{step} * bits));
    word = word ? b.binary(OpKind::Or, word, factor) : factor;
  }
  return word;
}

// The first `count` of a row of bytes; the others are zeros, or bytes that meet zeros.
Register load_row(Builder& b, const ScalarOperands& operands, int count, int row) {
  const kernel::MachineType type{Scalar::I8, row};
  if (operands.lie_together) {
    if (count == row || operands.has_whole_tail) return b.load(type, operands.buffer, operands.place(0));
    return b.load_masked(type, operands.buffer, operands.place(0), b.lane_mask(row, count),
                         b.constant_int(type, 0));
  }
  Register bytes = b.constant_int(type, 0);
  for (int step = 0; step < count; ++step)
    bytes = b.insert(bytes, b.load({Scalar::I8, 1}, operands.buffer, operands.place(step)), step);
  return bytes;
}

} // namespace

Register load_operands(Builder& b, const plan::ContractionShape& shape, const ScalarOperands& operands,
                       const IntExpr& k) {
  int group = shape.mac.k_group();
  if (group == 1)
    return widened(b, shape.mac, operands.dtype,
                   load_at(b, operands.buffer, operands.dtype, operands.place(0), Lanes{}));
  bool is_tail = shape.k_tail > 0 && k.is_constant() && k.value() == shape.k.back().extent - 1;
  if (shape.mac.kind == MacKind::Dot16) return load_row(b, operands, is_tail ? shape.k_tail : group, group);
  bool fills_word = bit_width(operands.dtype) * group == 32;
  if (fills_word && operands.lie_together && (!is_tail || operands.has_whole_tail))
    return b.load({Scalar::I32, 1}, operands.buffer, operands.place(0));
  return join_steps(b, operands, is_tail ? shape.k_tail : group, 32 / group);
}

Register load_packed_operands(Builder& b, const plan::MacInstruction& product, int buffer,
                              const IntExpr& index, int lanes) {
  if (product.kind == MacKind::Dot16)
    return b.load({Scalar::I8, product.k_group() * lanes}, buffer, index, product.k_group());
  if (int group = product.k_group(); group > 1) {
    if (bit_width(product.rhs) * group == 32) return b.load({Scalar::I32, lanes}, buffer, index, 4 * lanes);
    return widened_to_i16(b, product.rhs, b.load({Scalar::I8, group * lanes}, buffer, index, group * lanes));
  }
  Scalar scalar = memory_scalar(product.rhs);
  Register value = b.load({scalar, lanes}, buffer, index, lanes * kernel::scalar_bytes(scalar));
  if (scalar == Scalar::F16 || scalar == Scalar::BF16) return b.cast(OpKind::FExt, value, Scalar::F32);
  return widened(b, product, product.rhs, value);
}

// A byte of two becomes 16 bits, 0x00hl and then 0x0h0l; exclusive or and subtraction extend the signs.
static Register load_four_bits(Builder& b, int buffer, const IntExpr& place, int bytes) {
  Register words =
      b.cast(OpKind::ZExt, b.load({Scalar::I8, bytes / 2}, buffer, place, bytes / 2), Scalar::I16);
  auto splat = [&](int64_t value) { return b.constant_int(b.type(words), value); };
  words = b.binary(OpKind::Or, words, b.binary(OpKind::Shl, words, splat(4)));
  words = b.binary(OpKind::Xor, b.binary(OpKind::And, words, splat(0x0f0f)), splat(0x0808));
  Register signed_bytes = b.cast(OpKind::Bitcast, words, Scalar::I8);
  return b.binary(OpKind::ISub, signed_bytes, b.constant_int(b.type(signed_bytes), 8));
}

Register load_packed_columns(Builder& b, const plan::MacInstruction& product, int buffer,
                             const PackedOperand& packed, const IntExpr& index, bool widens) {
  int lanes = packed.tile.lanes;
  if (!packed.in_four_bits) return load_packed_operands(b, product, buffer, index, lanes);
  Register bytes = load_four_bits(b, buffer, packed.place(index), lanes * packed.k_group);
  if (widens) return bytes;
  return packed.k_group == 4 ? b.cast(OpKind::Bitcast, bytes, Scalar::I32)
                             : widened_to_i16(b, product.rhs, bytes);
}

// Shifts bring the sign to the top, and all bits down again.
Register step_of_words(Builder& b, Register words, int step, int k_extent, Register table) {
  int bits = 32 / k_extent;
  if (table) {
    Register low =
        step == 0 ? words : b.binary(OpKind::LShr, words, b.constant_int(b.type(words), bits * step));
    return b.emit(OpKind::LookUp, {table, low}, b.type(words).with_scalar(Scalar::F32));
  }
  auto shift = [&](OpKind kind, Register value, int by) {
    return by == 0 ? value : b.binary(kind, value, b.constant_int(b.type(value), by));
  };
  Register top = shift(OpKind::Shl, words, 32 - bits * (step + 1));
  return b.cast(OpKind::SIToF, shift(OpKind::AShr, top, 32 - bits), Scalar::F32);
}

Register table_of_steps(Builder& b, int k_extent) {
  int count = 1 << (32 / k_extent);
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(i < count / 2 ? i : i - count);
  return b.cast(OpKind::SIToF, b.constant_lanes({Scalar::I32, count}, std::move(values)), Scalar::F32);
}

Register group_of_words(Builder& b, Register words, int group) {
  auto splat = [&](int64_t bytes) { return b.constant_int(b.type(words), bytes); };
  if (group > 0) words = b.binary(OpKind::LShr, words, splat(4));
  return b.binary(OpKind::And, words, splat(0x0f0f0f0f));
}

Register unpacked_operands(Builder& b, const plan::MacInstruction& product, Register operands) {
  if (product.k_group() == 1 || product.kind == MacKind::Dot16) return operands;
  Scalar step = product.k_group() == 4 ? Scalar::I8 : is_float(product.lhs) ? Scalar::BF16 : Scalar::I16;
  return b.type(operands).scalar == step ? operands : b.cast(OpKind::Bitcast, operands, step);
}

std::array<Register, 2> widened_pairs(Builder& b, DType dtype, Register bytes) {
  std::array<Register, 2> pairs;
  for (int64_t odd : {0, 1}) {
    Register two = b.shuffle(bytes, bytes, {odd, odd + 2});
    pairs[static_cast<size_t>(odd)] =
        b.cast(is_signed(dtype) ? OpKind::SExt : OpKind::ZExt, two, Scalar::I16);
  }
  return pairs;
}

Register multiply_add(Builder& b, const plan::MacInstruction& product, Register scalar, Register vector,
                      Register sum) {
  if (product.kind == MacKind::Fma && is_float(product.accumulator)) return b.fma(scalar, vector, sum);
  bool lhs_signed = is_signed(product.lhs), rhs_signed = is_signed(product.rhs);
  if (product.kind == MacKind::Fma && b.type(scalar).scalar == Scalar::I8) { // lanes that are not widened yet
    if (lhs_signed && !rhs_signed) std::swap(scalar, vector);
    OpKind like = lhs_signed ? OpKind::MacS8S8 : OpKind::MacU8U8;
    return b.emit(lhs_signed == rhs_signed ? like : OpKind::MacU8S8, {sum, scalar, vector}, b.type(sum));
  }
  if (product.kind == MacKind::Fma)
    return b.binary(OpKind::IAdd, b.binary(OpKind::IMul, scalar, vector), sum);
  FIRN_CHECK(product.kind != MacKind::TileMatrix, "a tile matrix is no product of vectors");
  auto dot = [&](OpKind kind, Register lhs, Register rhs) {
    return b.emit(kind, {sum, lhs, rhs}, b.type(sum));
  };
  if (product.kind == MacKind::Dot2)
    return dot(is_float(product.lhs) ? OpKind::DotBF16 : OpKind::DotS16, scalar, vector);
  if (lhs_signed == rhs_signed) return dot(lhs_signed ? OpKind::DotS8S8 : OpKind::DotU8U8, scalar, vector);
  OpKind unlike = product.kind == MacKind::Dot4Narrow ? OpKind::DotU8S8Narrow : OpKind::DotU8S8;
  return lhs_signed ? dot(unlike, vector, scalar) : dot(unlike, scalar, vector);
}

} // namespace firn::lower
