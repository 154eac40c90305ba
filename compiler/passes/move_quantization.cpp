// move-quantization: lets bytes, rather than the floats that they stand for, be moved and stored.
//
//   %f = multiply (convert %x : f32[64,8]), %s          %t = transpose %x : u8[8,64]
//   %t = transpose %f {permutation = [1, 0]}      ->    %f = multiply (convert %t : f32[8,64]), %s
//
//   %c = concatenate %a, %b : f32[8,64]                 %p = quantize %a   %q = quantize %b
//   %q = quantize %c : u8[8,64]                   ->    %c = concatenate %p, %q : u8[8,64]
//
//   quantize (dequantize %x)                      ->    %x, where both have the same scale and zero point
//
//   %q = quantize %y : i8                         ->    %q = convert (xor (quantize %y : u8), 0x80) : i8,
//                                                       where bytes of unlike signs alone are multiplied
//
// Movements and maxima of windows choose among values and leave their order; quantising and dequantising by
// one positive scale do so too, so that the order of both does not matter: results are the same bits. What is
// quantised moves up to what computes it, and becomes the end of that kernel.
//
// - Requires: constants folded.
// - Establishes: between a quantisation and the next dequantisation there are no floats that are only moved.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/target/product.h"

#include <algorithm>

namespace firn {
namespace {

// Whether every window has an element that is no padding.
bool fills_windows(const Instruction& pooling) {
  const std::vector<WindowDim>& dims = pooling.attributes().window().dims;
  const Type& type = pooling.operand(0).type();
  for (size_t d = 0; d < dims.size(); ++d) {
    IntExpr last = (pooling.type().dims[d].extent - 1) * dims[d].stride - dims[d].pad_low;
    IntExpr room = type.dims[d].extent - 1 - last;
    if (dims[d].input_dilation != 1 || dims[d].pad_low >= dims[d].size || room.lower_bound() < 0 ||
        (dims[d].dilation != 1 && (dims[d].pad_low > 0 || dims[d].pad_high > 0)))
      return false;
  }
  return true;
}

bool is_max_pooling(const Instruction& instruction) {
  return instruction.is(Opcode::ReduceWindow) && instruction.num_operands() == 2 &&
         simple_reducer(instruction) == Opcode::Maximum && fills_windows(instruction) &&
         is_splat_of(instruction.operand(1), is_float(instruction.type().dtype) ? -INFINITY : -128);
}

// Ops whose result has elements of operand 0 alone, in some order.
bool only_moves_first(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Reshape:
  case Opcode::Transpose:
  case Opcode::Slice:
  case Opcode::Reverse:
  case Opcode::BroadcastInDim:
  case Opcode::Gather: return true;
  default: return is_max_pooling(instruction);
  }
}

// The movement of other operands in place of those whose elements it moves.
Value moved(GraphBuilder& builder, Instruction& movement, const std::vector<Value>& of) {
  DType dtype = of[0].dtype();
  if (movement.is(Opcode::ReduceWindow)) {
    return builder.reduce_window(Opcode::Maximum, of[0], movement.attributes().window());
  }
  std::vector<Value> operands = of;
  for (int i = static_cast<int>(of.size()); i < movement.num_operands(); ++i)
    operands.push_back(movement.operand(i));
  Type type = movement.type();
  type.dtype = dtype;
  return builder.make_typed(movement.opcode(), operands, {type}, movement.attributes())->result();
}

GraphBuilder builder_at(Instruction& instruction) {
  return GraphBuilder(*instruction.parent(), &instruction);
}

// move(dequantize(x)) = dequantize(move(x))
Value sink_dequantization(Instruction& instruction) {
  if (!only_moves_first(instruction) || !instruction.type().is_tensor()) return {};
  auto from = dequantized(instruction.operand(0));
  if (!from || !is_per_tensor(*from) || instruction.type().dtype != DType::F32) return {};
  if (instruction.is(Opcode::ReduceWindow) && !quantization_of(*from)) return {};
  if (instruction.is(Opcode::BroadcastInDim) && instruction.operand(0).rank() == 0) return {};
  GraphBuilder builder = builder_at(instruction);
  return dequantize_like(builder, moved(builder, instruction, {from->integers}), *from);
}

// The same of values that all stand for the same numbers.
Value sink_concatenated(Instruction& concatenate) {
  if (!concatenate.is(Opcode::Concatenate) || concatenate.type().dtype != DType::F32) return {};
  std::vector<Value> integers;
  std::optional<Dequantized> first;
  for (Value operand : concatenate.operands()) {
    auto part = dequantized(operand);
    auto by = part ? quantization_of(*part) : std::nullopt;
    if (!by ||
        (first && (*by != *quantization_of(*first) || part->integers.dtype() != first->integers.dtype())))
      return {};
    if (!first) first = part;
    integers.push_back(part->integers);
  }
  if (!first) return {};
  GraphBuilder builder = builder_at(concatenate);
  return dequantize_like(builder, moved(builder, concatenate, integers), *first);
}

// Whether quantising the value is the end of the kernel that computes it, or what reads it.
bool is_quantised_for_less(Value value) {
  bool is_computed = !value.def->is(Opcode::Parameter) && !value.def->is(Opcode::Constant);
  return value.rank() > 0 && is_computed && (has_one_use(value) || dequantized(value));
}

// quantize(move(y)) = move(quantize(y)), where y is computed for this alone.
Value raise_quantization(Instruction& convert) {
  auto to = quantized(convert);
  if (!to || (to->dtype != DType::U8 && to->dtype != DType::I8)) return {};
  if (auto from = dequantized(to->y); from && from->integers.dtype() == to->dtype &&
                                      quantization_of(*from) == to->by &&
                                      from->integers.type().dims == convert.type().dims)
    return from->integers;
  Instruction& movement = *to->y.def;
  bool joins = movement.is(Opcode::Concatenate);
  if (!has_one_use(to->y) || (!joins && !only_moves_first(movement)) || movement.is(Opcode::BroadcastInDim) ||
      movement.is(Opcode::Gather))
    return {};
  size_t count = joins ? movement.operands().size() : 1;
  std::vector<Value> sources(movement.operands().begin(),
                             movement.operands().begin() + static_cast<long>(count));
  if (!std::all_of(sources.begin(), sources.end(), is_quantised_for_less)) return {};
  GraphBuilder builder = builder_at(movement);
  for (Value& source : sources) source = quantize_like(builder, source, *to);
  return moved(builder, movement, sources);
}

// Activations of i8 become u8 with a zero point 128 above, or stay the same numbers where none is below zero:
// for instructions that multiply bytes of unlike signs alone.
Value make_unsigned(Instruction& convert, const TargetInfo& target) {
  auto to = quantized(convert);
  if (!to || to->dtype != DType::I8 ||
      dot4_facts(target, Factor::U8, Factor::S8).form != ProductForm::Native ||
      dot4_facts(target, Factor::S8, Factor::S8).form == ProductForm::Native)
    return {};
  ShiftedBytes shifted;
  if (to->by.zero_point == 0 && is_non_negative(to->y))
    to->low = 0;
  else
    shifted.shift = 128;
  to->by.zero_point += shifted.shift;
  to->low += static_cast<double>(shifted.shift);
  to->high += static_cast<double>(shifted.shift);
  to->dtype = DType::U8;
  GraphBuilder builder = builder_at(convert);
  return shift_like(builder, quantize_like(builder, to->y, *to), shifted);
}

// move(shift(x)) = shift(move(x)): none of the numbers changes its place in their order.
Value sink_shift(Instruction& instruction) {
  bool joins = instruction.is(Opcode::Concatenate);
  if (!joins && !only_moves_first(instruction)) return {};
  if (instruction.num_results() != 1 || instruction.type().dtype != DType::I8) return {};
  std::vector<Value> bytes;
  std::optional<ShiftedBytes> first;
  for (int i = 0; i < (joins ? instruction.num_operands() : 1); ++i) {
    auto part = shifted_bytes(instruction.operand(i));
    if (!part || (first && first->shift != part->shift)) return {};
    first = part;
    bytes.push_back(part->bytes);
  }
  GraphBuilder builder = builder_at(instruction);
  return shift_like(builder, moved(builder, instruction, bytes), *first);
}

// What is computed of shifted bytes is computed of those below the shift.
Value undo_shift(Instruction& convert) {
  DType to = convert.type().dtype;
  if (!convert.is(Opcode::Convert) || (to != DType::I32 && to != DType::F32)) return {};
  auto shifted = shifted_bytes(convert.operand(0));
  if (!shifted) return {};
  GraphBuilder builder = builder_at(convert);
  if (shifted->shift == 0) return builder.convert(shifted->bytes, to);
  Value wide = builder.convert(shifted->bytes, DType::I32);
  wide = builder.op(Opcode::Subtract, {wide, builder.splat_like(wide, static_cast<double>(shifted->shift))});
  return builder.convert(wide, to);
}

Value move(Instruction& instruction, const PassOptions& options) {
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value value = sink_dequantization(instruction)) return value;
  if (Value value = sink_concatenated(instruction)) return value;
  if (Value value = raise_quantization(instruction)) return value;
  if (Value value = sink_shift(instruction)) return value;
  if (Value value = undo_shift(instruction)) return value;
  return options.target ? make_unsigned(instruction, *options.target) : Value{};
}

} // namespace

bool move_quantization(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, move);
}

} // namespace firn
