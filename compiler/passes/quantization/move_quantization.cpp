// move-quantization: lets integers, rather than the floats that they stand for, be moved and stored.
//
//   %f = multiply (convert %x : f32[64,8]), %s          %t = transpose %x : u8[8,64]
//   %t = transpose %f {permutation = [1, 0]}      ->    %f = multiply (convert %t : f32[8,64]), %s
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
// - Requires: constants folded.
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
  if (!instruction.is(Opcode::Pad) || !constant_literal(from.integers) || from.shift != 0 ||
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

// A spread parameter in the result of a gather: the dims before the axis stay, and those of the indices take
// its place. Blocks are joined behind the gather.
Value gathered_parameter(GraphBuilder& builder, const Instruction& gather, const Instruction& spread,
                         const Type& to) {
  const int64_t axis = gather.attributes().integer("axis", 0), rank = gather.operand(1).rank();
  if (spread.is(Opcode::Reshape)) {
    const Instruction& blocks = *spread.operand(0).def;
    if (axis != 0 || !blocks.is(Opcode::BroadcastInDim) || blocks.type().rank() == 0 ||
        blocks.type().dims[0] != spread.type().dims[0])
      return {};
    std::vector<Dim> dims = gather.operand(1).type().dims;
    dims.insert(dims.end(), blocks.type().dims.begin() + 1, blocks.type().dims.end());
    return builder.reshape(gathered_parameter(builder, gather, blocks, Type::tensor(to.dtype, dims)),
                           to.dims);
  }
  Value values = spread.operand(0);
  std::vector<int64_t> dims;
  for (int64_t dim : spread.attributes().ints("dims")) {
    if (dim == axis) {
      values = builder.op(Opcode::Gather, {values, gather.operand(1)},
                          {{"axis", static_cast<int64_t>(dims.size())}});
      for (int64_t d = 0; d < rank; ++d) dims.push_back(axis + d);
    } else
      dims.push_back(dim < axis ? dim : dim + rank - 1);
  }
  return make_broadcast(builder, values, to, dims);
}

// A zero point or scale beside what a movement makes of its operand; null: its places are not known.
Value moved_parameter(GraphBuilder& builder, const Instruction& movement, Value parameter) {
  const Type to = Type::tensor(parameter.dtype(), movement.type().dims);
  if (auto splat = splat_value(parameter)) return make_splat(builder, to, *splat);
  const Instruction& spread = *parameter.def;
  if (spread.is(Opcode::Convert)) {
    Value narrow = moved_parameter(builder, movement, spread.operand(0));
    return narrow ? builder.convert(narrow, parameter.dtype()) : Value{};
  }
  const bool is_spread = spread.is(Opcode::BroadcastInDim);
  if (is_spread && spread.operand(0).rank() == 0) return make_broadcast(builder, spread.operand(0), to, {});
  if (movement.is(Opcode::Gather) && (is_spread || spread.is(Opcode::Reshape)))
    return gathered_parameter(builder, movement, spread, to);
  if (!is_spread || spread.operand(0).rank() > 1) return {};
  auto moved = moved_scales(builder, movement, spread.operand(0), spread.attributes().ints("dims")[0]);
  return moved ? make_broadcast(builder, moved->values, to, {moved->dim}) : Value{};
}

// move(dequantize(x)) = dequantize(move(x)), for weights with a zero point or a scale for each channel.
Value sink_channel_scales(Instruction& instruction) {
  if (!instruction.type().is_tensor() || instruction.type().dtype != DType::F32) return {};
  bool only_moves = only_moves_first(instruction);
  if (!only_moves && !instruction.is(Opcode::Pad)) return {};
  auto from = dequantized(instruction.operand(0));
  if (!from || from->shift != 0 || !from->scale || is_per_tensor(*from) || !is_moved_constant(from->integers))
    return {};
  GraphBuilder builder = builder_at(instruction);
  if (Value bytes = from->zero_point ? signed_bytes(builder, *from) : Value{}) {
    from->integers = bytes;
    from->zero_point = {};
  }
  auto padding = only_moves ? 0 : padding_of_weights(instruction, *from);
  Value scale = padding ? moved_parameter(builder, instruction, from->scale) : Value{}, zero_point;
  if (!scale) return {};
  if (from->zero_point && !(zero_point = moved_parameter(builder, instruction, from->zero_point))) return {};
  Value numbers = moved_integers(builder, instruction, from->integers, *padding);
  if (zero_point) numbers = builder.op(Opcode::Subtract, {builder.convert(numbers, DType::I32), zero_point});
  return builder.op(Opcode::Multiply, {builder.convert(numbers, DType::F32), scale});
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

// Clamps integers, unless the bounds hold all of their type.
Value bounded_integers(GraphBuilder& builder, Value integers, double low, double high) {
  const NumberRange all = range_of(integers.dtype());
  if (low <= all.min && high >= all.max) return integers;
  return builder.op(Opcode::Clamp,
                    {builder.splat_like(integers, low), integers, builder.splat_like(integers, high)});
}

// quantize(bound(dequantize(x))) = bound(x), of one scale and zero point.
Value quantized_again(Instruction& convert, const Quantized& to) {
  Bounded inner = bounded(to.y);
  auto from = dequantized(inner.value);
  if (!from || from->integers.dtype() != to.dtype || quantization_of(*from) != to.by ||
      from->integers.type().dims != convert.type().dims)
    return {};
  GraphBuilder builder = builder_at(convert);
  return bounded_integers(builder, from->integers, quantized_number(to, inner.low),
                          quantized_number(to, inner.high));
}

// clamp(quantize(y)) = quantize(y) by both bounds, if nothing else reads the bytes.
Value narrow_quantization(Instruction& clamp) {
  if (!clamp.is(Opcode::Clamp) || !has_one_use(clamp.operand(1))) return {};
  auto low = splat_value(clamp.operand(0)), high = splat_value(clamp.operand(2));
  auto quantization = quantized(*clamp.operand(1).def);
  if (!low || !high || !quantization) return {};
  quantization->low = std::max(quantization->low, *low);
  quantization->high = std::min(quantization->high, *high);
  if (quantization->low > quantization->high) return {};
  GraphBuilder builder = builder_at(clamp);
  return quantize_like(builder, quantization->y, *quantization);
}

// quantize(move(y)) = move(quantize(y)), if nothing else reads y.
Value raise_quantization(Instruction& convert) {
  auto to = quantized(convert);
  if (!to || !is_quantised(to->dtype)) return {};
  if (Value integers = quantized_again(convert, *to)) return integers;
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

Value quantized_and_shifted(Instruction& convert, Quantized to, const Shifted& by) {
  to.by.zero_point += by.shift;
  to.low += static_cast<double>(by.shift);
  to.high += static_cast<double>(by.shift);
  GraphBuilder builder = builder_at(convert);
  return shift_like(builder, quantize_like(builder, to.y, to), by);
}

// Makes activations of i8 u8, for instructions that multiply bytes of unlike signs alone: with a zero point
// 128 above, or as the same numbers if none is below zero.
Value make_unsigned(Instruction& convert, const TargetInfo& target) {
  auto to = quantized(convert);
  if (!to || to->dtype != DType::I8 || !plan::needs_unsigned_activations(target)) return {};
  Shifted by;
  if (to->by.zero_point == 0 && (to->low >= 0 || is_non_negative(to->y)))
    to->low = std::max(to->low, 0.0);
  else
    by.shift = 128;
  to->dtype = DType::U8;
  return quantized_and_shifted(convert, *to, by);
}

// Makes activations of u16 i16, with a zero point 32768 below, for instructions that multiply pairs of i16.
Value make_signed(Instruction& convert, const TargetInfo& target) {
  auto to = quantized(convert);
  if (!to || to->dtype != DType::U16 || !plan::is_profitable_in_pairs(target)) return {};
  to->dtype = DType::I16;
  return quantized_and_shifted(convert, *to, {{}, -32768});
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

// convert(shift(x)) = convert(x) - shift: ops behind it then compute with x, without the xor.
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
  if (Value value = raise_quantization(instruction)) return value;
  return narrow_quantization(instruction);
}

Value choose_signs(Instruction& instruction, const PassOptions& options) {
  if (Value value = move_past_quantization(instruction, options)) return value;
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (Value value = sink_shift(instruction)) return value;
  if (Value value = sink_shift_of_bounds(instruction)) return value;
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
