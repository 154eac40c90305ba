// The body of `blocked_dot`, and its reading.
#include "compiler/graph/blocked_dot.h"

#include "compiler/graph/composites.h"
#include "compiler/graph/times_transposed.h"

namespace firn {

// The values that bytes in blocks stand for: each times its block's scale.
static Value scaled_rows(GraphBuilder& b, Value x, Value scales, Dim block) {
  std::vector<Dim> blocks = scales.type().dims;
  std::vector<int64_t> dims;
  for (int d = 0; d < scales.rank(); ++d) dims.push_back(d);
  blocks.push_back(block);
  Type wide = Type::tensor(DType::F32, blocks);
  Value scale = b.make_typed(Opcode::BroadcastInDim, {scales}, {wide}, {{"dims", dims}})->result();
  Value rows = b.binary(Opcode::Multiply, b.reshape(b.convert(x, DType::F32), blocks), scale);
  return b.reshape(rows, x.type().dims);
}

// The integers as numbers in the order of their steps, [n, blocks, block].
static Value integers_of(GraphBuilder& b, Value stored, DType dtype) {
  Value integers = b.convert(stored, dtype);
  if (int64_t distance = storage_offset(stored.dtype()))
    integers = b.op(Opcode::Subtract, {integers, b.splat_like(integers, static_cast<double>(distance))});
  if (stored.dtype() != DType::U4) return integers;
  std::vector<Dim> dims = stored.type().dims, words = dims;
  words.back() = Dim(stored.dim(2) / 8);
  words.insert(words.end(), {Dim(4), Dim(2)});
  return b.reshape(b.transpose(b.reshape(integers, words), {0, 1, 2, 4, 3}), dims);
}

Value blocked_weights(GraphBuilder& b, Value integers, Value scales, DType dtype) {
  const std::vector<Dim>& dims = integers.type().dims;
  Value scale = b.make_typed(Opcode::BroadcastInDim, {b.convert(scales, dtype)}, {Type::tensor(dtype, dims)},
                             {{"dims", std::vector<int64_t>{0, 1}}})
                    ->result();
  Value weights = b.binary(Opcode::Multiply, integers_of(b, integers, dtype), scale);
  return b.reshape(weights, {dims[0], Dim(dims[1].value() * dims[2].value())});
}

Value make_blocked_dot(GraphBuilder& builder, Value x, Value integers, Value scales, Value row_scales,
                       Value row_starts) {
  Type result = Type::tensor(DType::F32, x.type().dims);
  result.dims.back() = integers.type().dims[0];
  auto body = [&](GraphBuilder& b, const std::vector<Value>& p) {
    Value weights = blocked_weights(b, p[1], p[2], DType::F32);
    Value rows = p.size() == 3 ? p[0] : scaled_rows(b, p[0], p[3], p[1].type().dims[2]);
    return std::vector<Value>{times_transposed(b, rows, weights)};
  };
  std::vector<Value> operands{x, integers, scales};
  if (row_scales) operands.insert(operands.end(), {row_scales, row_starts});
  return make_composite(builder, "blocked_dot", operands, {result}, {}, body)->result();
}

bool has_blocked_dot_shapes(const Instruction& instruction) {
  int operands = instruction.num_operands();
  if (!is_composite(instruction, "blocked_dot") || (operands != 3 && operands != 5) ||
      instruction.num_results() != 1)
    return false;
  for (int i = 0; i < operands; ++i)
    if (!instruction.operand(i).type().is_tensor()) return false;
  const Type &x = instruction.operand(0).type(), &integers = instruction.operand(1).type(),
             &scales = instruction.operand(2).type(), &result = instruction.type();
  if (!result.is_tensor() || !integers.is_static() || !scales.is_static()) return false;
  if (x.rank() < 1 || integers.rank() != 3 || scales.rank() != 2) return false;
  std::vector<Dim> wanted = x.dims, row_blocks = x.dims;
  wanted.back() = integers.dims[0];
  row_blocks.back() = integers.dims[1];
  for (int i = 3; i < operands; ++i)
    if (instruction.operand(i).type().dims != row_blocks) return false;
  return x.dims.back() == Dim(integers.dim(1) * integers.dim(2)) && result.dims == wanted &&
         scales.dims[0] == integers.dims[0] && scales.dims[1] == integers.dims[1];
}

bool is_blocked_dot(const Instruction& instruction) {
  if (!has_blocked_dot_shapes(instruction)) return false;
  bool are_bytes = has_byte_rows(instruction);
  const Type &x = instruction.operand(0).type(), &integers = instruction.operand(1).type(),
             &scales = instruction.operand(2).type(), &result = instruction.type();
  for (const Type* type : {&x, &integers, &scales, &result})
    if (!type->layout.is_plain()) return false;
  if (are_bytes) {
    const Type &row_scales = instruction.operand(3).type(), &row_starts = instruction.operand(4).type();
    bool have_types = row_scales.dtype == DType::F32 && row_starts.dtype == DType::I32;
    if (!have_types || !row_scales.layout.is_plain() || !row_starts.layout.is_plain()) return false;
  }
  return x.dtype == (are_bytes ? DType::I8 : DType::F32) && result.dtype == DType::F32 &&
         (are_bytes ? storage_offset(integers.dtype) > 0
                    : integers.dtype == DType::I4 || integers.dtype == DType::I8) &&
         (scales.dtype == DType::F32 || scales.dtype == DType::BF16 || scales.dtype == DType::F16);
}

int64_t steps_per_word(DType integers) {
  return bit_width(integers) == 4 ? 32 / bit_width(integers) : 1;
}

} // namespace firn
