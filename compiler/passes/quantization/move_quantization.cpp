// move-quantization: lets integers, rather than the floats that they stand for, be moved and stored.
//
//   %f = dequantize %x, %s : f32[64,8]                  %t = transpose %x : u8[8,64]
//   %t = transpose %f {permutation = [1, 0]}      ->    %f = dequantize %t, %s : f32[8,64]
//
//   %c = concatenate %a, %b : f32[8,64]                 %p = quantize %a   %q = quantize %b
//   %q = quantize %c : u8[8,64]                   ->    %c = concatenate %p, %q : u8[8,64]
//
//   quantize (dequantize %x)                      ->    %x, where both have the same scale and zero point
//
//   quantize (clamp %l, (dequantize %x), %h)      ->    clamp (quantize %l), %x, (quantize %h), the same, and
//                                                       where %x is quantised for this alone, by those bounds
//
//   %q = quantize %y : i8                         ->    %q = convert (xor (quantize %y : u8), 0x80) : i8,
//                                                       where bytes of unlike signs alone are multiplied
//
//   %q = quantize %y : u16                        ->    %q = convert (xor (quantize %y : i16), 0x8000) : u16,
//                                                       where pairs of i16 take less time than floats
//
// Weights are moved at once; zero points and scales of channels follow them, and the integer that stands for
// zero is padded, as the importer's filters of transposed convolutions are made.
//
// Movements, maxima of windows and bounds choose among values and leave their order; quantising and
// dequantising by one positive scale do so too, so that the order of both does not matter: results are the
// same bits. What is quantised moves up to what computes it, and becomes the end of that kernel.
//
// - Requires: constants folded; quantised values are ops (raise-quantization).
// - Establishes: between a quantisation and the next dequantisation there are no floats that are only moved.
// - Breaks: nothing.
#include "compiler/graph/evaluate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/graph_forms.h"
#include "compiler/plan/mac_instruction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
  return instruction.is(Opcode::ReduceWindow) && moved_operands(instruction) == 2 &&
         fills_windows(instruction) &&
         is_splat_of(instruction.operand(1), *reducer_identity(Opcode::Maximum, instruction.type().dtype));
}

// Ops whose result has elements of operand 0 alone, in some order. Padding is not among them: its value is a
// number that no byte need stand for.
bool only_moves_first(const Instruction& instruction) {
  return moved_operands(instruction) == 1 || is_max_pooling(instruction);
}

GraphBuilder builder_at(Instruction& instruction) {
  return GraphBuilder(*instruction.parent(), &instruction);
}

// The integer that pads constants where the model pads with zeros; nothing if there is none, or if the
// instruction does something else.
std::optional<double> padding_of_weights(const Instruction& instruction, const Dequantized& from) {
  if (!instruction.is(Opcode::Pad) || !constant_literal(from.integers) ||
      !is_splat_of(instruction.operand(1), 0))
    return std::nullopt;
  if (!from.zero_point) return 0;
  LiteralRef zeros = known_numbers(from.zero_point);
  if (!zeros || !zeros->is_splat()) return std::nullopt;
  const double zero = zeros->get_double(0);
  const NumberRange own = range_of(from.integers.dtype());
  return zero >= own.min && zero <= own.max ? std::optional(zero) : std::nullopt;
}

// The movement of integers, evaluated if they are constants: passes that multiply look for constant weights.
Value moved_integers(GraphBuilder& builder, const Instruction& movement, Value integers, double padding) {
  std::vector<Value> operands{integers};
  if (movement.is(Opcode::Pad)) operands.push_back(builder.scalar(integers.dtype(), padding));
  Value result = moved(builder, movement, operands);
  bool grows = movement.is(Opcode::BroadcastInDim) || movement.is(Opcode::Gather);
  if (!constant_literal(integers) || grows) return result;
  std::vector<LiteralRef> literals;
  for (Value operand : result.def->operands()) {
    if (!constant_literal(operand)) return result;
    literals.push_back(operand.def->literal());
  }
  auto made = evaluate_instruction(*result.def, literals);
  if (!made) return result;
  GraphBuilder beside(builder);
  beside.set_location(integers.def->location());
  return beside.constant((*made)[0]);
}

// move(dequantize(x)) = dequantize(move(x))
Value sink_dequantization(Instruction& instruction) {
  bool only_moves = only_moves_first(instruction);
  if ((!only_moves && !instruction.is(Opcode::Pad)) || !instruction.type().is_tensor()) return {};
  auto from = dequantized(instruction.operand(0));
  if (!from || !is_per_tensor(*from) || instruction.type().dtype != DType::F32) return {};
  auto padding = only_moves ? 0 : padding_of_weights(instruction, *from);
  if (!padding) return {};
  if (instruction.is(Opcode::ReduceWindow) && !quantization_of(*from)) return {};
  if (instruction.is(Opcode::BroadcastInDim) && instruction.operand(0).rank() == 0) return {};
  GraphBuilder builder = builder_at(instruction);
  return dequantize_like(builder, moved_integers(builder, instruction, from->integers, *padding), *from);
}

int64_t count_before(const std::vector<int64_t>& dims, size_t end) {
  return std::accumulate(dims.begin(), dims.begin() + static_cast<long>(end), int64_t{1},
                         std::multiplies<>());
}

// One number for each index of a dim.
struct ChannelScales {
  Value values;
  int64_t dim;
};

// The numbers of an operand's dim in the result of a reshape, if that has a dim of the same elements, or one
// that holds the dim and its neighbours.
std::optional<ChannelScales> reshaped_scales(GraphBuilder& builder, const Instruction& reshape, Value scales,
                                             size_t dim) {
  const std::vector<int64_t> from = reshape.operand(0).type().static_dims(),
                             to = reshape.type().static_dims();
  for (size_t d = 0; d < to.size(); ++d) {
    int64_t first = count_before(to, d);
    if (to[d] == from[dim] && first == count_before(from, dim))
      return ChannelScales{scales, static_cast<int64_t>(d)};
    size_t begin = dim, end = dim + 1;
    while (begin > 0 && count_before(from, begin) > first) --begin;
    while (end < from.size() && count_before(from, end) < first * to[d]) ++end;
    if (count_before(from, begin) != first || count_before(from, end) != first * to[d]) continue;
    std::vector<int64_t> dims(from.begin() + static_cast<long>(begin), from.begin() + static_cast<long>(end));
    Value spread = make_broadcast(builder, scales, Type::tensor_of(scales.dtype(), dims),
                                  {static_cast<int64_t>(dim - begin)});
    return ChannelScales{builder.reshape(spread, {Dim(to[d])}), static_cast<int64_t>(d)};
  }
  return std::nullopt;
}

// The numbers of a dim in the result of an op that moves elements; nothing if no dim of the result has one
// for each index.
std::optional<ChannelScales> moved_scales(GraphBuilder& builder, const Instruction& movement, Value scales,
                                          int64_t dim) {
  const Attributes& attributes = movement.attributes();
  auto at = static_cast<size_t>(dim);
  bool stays = true;
  switch (movement.opcode()) {
  case Opcode::Reverse: stays = !contains(attributes.ints("dims"), dim); break;
  case Opcode::Pad: stays = movement.type().dims[at] == movement.operand(0).type().dims[at]; break;
  case Opcode::Transpose:
    return ChannelScales{scales, inverse_permutation(attributes.ints("permutation"))[at]};
  case Opcode::Reshape:
    if (!movement.type().is_static() || movement.type().num_elements() == 0) return std::nullopt;
    return reshaped_scales(builder, movement, scales, at);
  case Opcode::Slice: {
    auto of_dim = [&](const char* name) { return std::vector{attributes.ints(name)[at]}; };
    return ChannelScales{builder.slice(scales, of_dim("starts"), of_dim("limits"), of_dim("strides")), dim};
  }
  default: stays = false;
  }
  return stays ? std::optional(ChannelScales{scales, dim}) : std::nullopt;
}

bool is_moved_constant(Value value) {
  while (only_moves_first(*value.def)) value = value.def->operand(0);
  return value.def->is(Opcode::Constant);
}

// The axis in the result of a gather; -1: that has several dims or none in its place.
int64_t gathered_axis(const Instruction& gather, int64_t axis) {
  const int64_t at = gather.attributes().integer("axis", 0);
  if (axis == at) return gather.operand(1).rank() == 1 ? at : -1;
  return axis < at ? axis : axis + gather.operand(1).rank() - 1;
}

// A parameter of several dims, or of blocks, in the result of a gather: gathered itself where it has an
// element for each index.
Value gathered_parameter(GraphBuilder& builder, const Instruction& gather, Value parameter, int64_t axis,
                         int64_t block) {
  const int64_t at = gather.attributes().integer("axis", 0);
  if (parameter.rank() == 1 && block == 0 && axis != at) return parameter;
  const bool is_vector = parameter.rank() == 1 && block == 0;
  if (is_vector) {
    Value picked = builder.op(Opcode::Gather, {parameter, gather.operand(1)}, {{"axis", int64_t{0}}});
    if (picked.rank() < 2) return picked;
    std::vector<Dim> dims(static_cast<size_t>(gather.type().rank()), Dim(1));
    std::copy(picked.type().dims.begin(), picked.type().dims.end(), dims.begin() + at);
    return builder.reshape(picked, dims);
  }
  if (block > 0 && axis == at) return {};
  if (!(parameter.type().dims[static_cast<size_t>(at)] == Dim(1)))
    return builder.op(Opcode::Gather, {parameter, gather.operand(1)}, {{"axis", at}});
  std::vector<Dim> dims = parameter.type().dims;
  dims.erase(dims.begin() + at);
  dims.insert(dims.begin() + at, static_cast<size_t>(gather.operand(1).rank()), Dim(1));
  return builder.reshape(parameter, dims);
}

// Gives `to` the parameter of `from` beside what a movement makes of its operand; false: its places are not
// known.
bool move_parameter(GraphBuilder& builder, const Instruction& movement, const Dequantized& from,
                    Value Dequantized::*parameter, Dequantized& to) {
  const Value values = from.*parameter;
  to.*parameter = values;
  if (!values || values.rank() == 0) return true;
  if (movement.is(Opcode::Gather)) {
    to.*parameter = gathered_parameter(builder, movement, values, from.axis, from.block);
    if ((to.*parameter) && ((to.*parameter).rank() == 1 || from.block > 0))
      to.axis = gathered_axis(movement, from.axis);
    return static_cast<bool>(to.*parameter);
  }
  if (values.rank() > 1 || from.block > 0) return false;
  auto moved = moved_scales(builder, movement, values, from.axis);
  if (!moved) return false;
  to.*parameter = moved->values;
  to.axis = moved->dim;
  return true;
}

// move(dequantize(x)) = dequantize(move(x)), for weights with a zero point or a scale for each channel.
Value sink_channel_scales(Instruction& instruction) {
  if (!instruction.type().is_tensor() || instruction.type().dtype != DType::F32) return {};
  bool only_moves = only_moves_first(instruction);
  if (!only_moves && !instruction.is(Opcode::Pad)) return {};
  auto from = dequantized(instruction.operand(0));
  if (!from || !from->scale || is_per_tensor(*from) || !is_moved_constant(from->integers)) return {};
  GraphBuilder builder = builder_at(instruction);
  if (Value bytes = from->zero_point ? signed_bytes(builder, *from) : Value{}) {
    from->integers = bytes;
    from->zero_point = {};
  }
  auto padding = only_moves ? 0 : padding_of_weights(instruction, *from);
  Dequantized to = *from;
  if (!padding || !move_parameter(builder, instruction, *from, &Dequantized::scale, to) ||
      !move_parameter(builder, instruction, *from, &Dequantized::zero_point, to))
    return {};
  return dequantize_like(builder, moved_integers(builder, instruction, from->integers, *padding), to);
}

// Concatenates integers instead of floats, if all operands have one scale and zero point.
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

// Whether quantising the value joins the kernel that computes it, or undoes its dequantisation.
bool is_quantised_for_less(Value value) {
  bool is_computed = !value.def->is(Opcode::Parameter) && !value.def->is(Opcode::Constant);
  return value.rank() > 0 && is_computed && (has_one_use(value) || dequantized(value));
}

// quantize(bound(dequantize(x))) = bound(x), of one scale and zero point.
Value quantized_again(Instruction& op, const Quantized& to) {
  Bounded inner = bounded(to.y);
  auto from = dequantized(inner.value);
  if (!from || from->integers.dtype() != to.dtype || quantization_of(*from) != to.by ||
      from->integers.type().dims != op.type().dims)
    return {};
  GraphBuilder builder = builder_at(op);
  return bounded_integers(builder, from->integers, quantized_number(to, inner.low),
                          quantized_number(to, inner.high));
}

// quantize(move(y)) = move(quantize(y)), if nothing else reads y.
Value move_up(Instruction& op) {
  auto to = quantized(op);
  if (!to || !is_quantised(to->dtype)) return {};
  if (Value integers = quantized_again(op, *to)) return integers;
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

Value quantized_and_shifted(Instruction& op, Quantized to, const Shifted& by) {
  to.by.zero_point += by.shift;
  to.low += static_cast<double>(by.shift);
  to.high += static_cast<double>(by.shift);
  GraphBuilder builder = builder_at(op);
  return shift_like(builder, quantize_like(builder, to.y, to), by);
}

// Makes activations of i8 u8, for instructions that multiply bytes of unlike signs alone: with a zero point
// 128 above, or as the same numbers if none is below zero.
Value make_unsigned(Instruction& op, const Machine& target) {
  auto to = quantized(op);
  if (!to || to->dtype != DType::I8 || !plan::needs_unsigned_activations(target)) return {};
  Shifted by;
  if (to->by.zero_point == 0 && (to->low >= 0 || is_non_negative(to->y)))
    to->low = std::max(to->low, 0.0);
  else
    by.shift = 128;
  to->dtype = DType::U8;
  return quantized_and_shifted(op, *to, by);
}

// Makes activations of u16 i16, with a zero point 32768 below, for instructions that multiply pairs of i16.
Value make_signed(Instruction& op, const Machine& target) {
  auto to = quantized(op);
  if (!to || to->dtype != DType::U16 || !plan::is_profitable_in_pairs(target)) return {};
  to->dtype = DType::I16;
  return quantized_and_shifted(op, *to, {{}, -32768});
}

// move(shift(x)) = shift(move(x)): a shift keeps the order of numbers.
Value sink_shift(Instruction& instruction) {
  bool joins = instruction.is(Opcode::Concatenate);
  if (!joins && !only_moves_first(instruction)) return {};
  if (instruction.num_results() != 1) return {};
  std::vector<Value> integers;
  std::optional<Shifted> first;
  for (int i = 0; i < (joins ? instruction.num_operands() : 1); ++i) {
    auto part = shifted(instruction.operand(i));
    if (!part || (first && first->shift != part->shift)) return {};
    first = part;
    integers.push_back(part->integers);
  }
  GraphBuilder builder = builder_at(instruction);
  return shift_like(builder, moved(builder, instruction, integers), *first);
}

// bound(shift(x)) = shift(bound(x))
Value sink_shift_of_bounds(Instruction& clamp) {
  if (!clamp.is(Opcode::Clamp)) return {};
  auto low = splat_value(clamp.operand(0)), high = splat_value(clamp.operand(2));
  auto inner = shifted(clamp.operand(1));
  if (!low || !high || !inner) return {};
  // Integers in front of the shift have no numbers below the least of their type.
  const double min = is_signed(inner->integers.dtype()) ? -32768 : 0;
  auto offset = static_cast<double>(inner->shift);
  GraphBuilder builder = builder_at(clamp);
  Value bound =
      bounded_integers(builder, inner->integers, std::max(min, *low + offset), std::max(min, *high + offset));
  return shift_like(builder, bound, *inner);
}

// dequantize(shift(x)) = dequantize(x) by another zero point: ops behind it then compute with x, without the
// xor.
Value dequantize_unshifted(Instruction& op) {
  auto from = dequantized(op.result());
  auto inner = from ? shifted(from->integers) : std::nullopt;
  if (!inner) return {};
  const auto zero = from->zero_point ? splat_value(from->zero_point) : std::optional(0.0);
  if (inner->shift == 0 && !(zero && *zero >= 0)) return {};
  GraphBuilder builder = builder_at(op);
  from->zero_point = unshifted(builder, from->zero_point, *inner);
  return dequantize_like(builder, inner->integers, *from);
}

// convert(shift(x)) = convert(x) - shift, likewise.
Value undo_shift(Instruction& convert) {
  DType to = convert.type().dtype;
  if (!convert.is(Opcode::Convert) || (to != DType::I32 && to != DType::F32)) return {};
  auto inner = shifted(convert.operand(0));
  if (!inner) return {};
  GraphBuilder builder = builder_at(convert);
  if (inner->shift == 0) return builder.convert(inner->integers, to);
  Value wide = builder.convert(inner->integers, DType::I32);
  wide = builder.op(Opcode::Subtract, {wide, builder.splat_like(wide, static_cast<double>(inner->shift))});
  return builder.convert(wide, to);
}

Value move_past_quantization(Instruction& instruction, const PassOptions&) {
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value value = sink_dequantization(instruction)) return value;
  if (Value value = sink_channel_scales(instruction)) return value;
  if (Value value = sink_concatenated(instruction)) return value;
  return move_up(instruction);
}

Value choose_signs(Instruction& instruction, const PassOptions& options) {
  if (Value value = move_past_quantization(instruction, options)) return value;
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value value = sink_shift(instruction)) return value;
  if (Value value = sink_shift_of_bounds(instruction)) return value;
  if (Value value = dequantize_unshifted(instruction)) return value;
  if (Value value = undo_shift(instruction)) return value;
  if (!options.target) return {};
  if (Value value = make_unsigned(instruction, *options.target)) return value;
  return options.goals.strict_math() ? Value{} : make_signed(instruction, *options.target);
}

} // namespace

bool move_quantization(Module& module, const PassOptions& options) {
  // Signs are chosen last: bounds, which tell whether numbers are below zero, have to be in place.
  bool changed = rewrite_module(module, options, move_past_quantization);
  return rewrite_module(module, options, choose_signs) || changed;
}

} // namespace firn
