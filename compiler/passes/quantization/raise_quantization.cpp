// raise-quantization: makes quantize and dequantize of the instructions that exporters write in their place.
//
//   %i = subtract (convert %x), broadcast(convert %z) : i32[64]
//   %f = multiply (convert %i : f32[64]), broadcast(%s)
//     ->
//   %f = dequantize %x, %s, %z : f32[64]
//
//   %r = round_nearest_even (divide %y, broadcast(%s)) : f32[64]
//   %q = convert (clamp 0, (add %r, %z), 127) : u8[64]
//     ->
//   %q = clamp 0, (quantize %y, %s, %z {to = u8}), 127 : u8[64]
//
// Scales and zero points whose elements are all one number become scalars. A number that is only widened
// becomes a dequantize of scale one, so that it is moved and multiplied as an integer, too.
//
// - Requires: constants folded, broadcasts in front of elementwise ops.
// - Establishes: quantised values are ops of the graph until lower-quantization.
// - Breaks: nothing. The reference bodies of the ops are what they replace.
#include "compiler/graph/quantization.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/spelled_quantization.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

// A scale or zero point as the ops take it.
struct Compact {
  Value value;
  int64_t axis = -1; // a vector or blocks run along it
  int64_t block = 0;
};

bool is_scalar(const Value& value) {
  return value.rank() == 0;
}

// The source of a broadcast in the rank of what it is spread over; `skipped`: a dim to leave out. Null: it is
// stretched along that dim.
Value in_full_rank(GraphBuilder& builder, const Instruction& broadcast, int64_t skipped) {
  const Value source = broadcast.operand(0);
  const std::vector<int64_t>& at = broadcast.attributes().ints("dims");
  std::vector<Dim> dims(broadcast.type().dims.size(), Dim(1));
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] == skipped && !(source.type().dims[i] == Dim(1))) return {};
    dims[static_cast<size_t>(at[i])] = source.type().dims[i];
  }
  if (skipped >= 0) dims.erase(dims.begin() + skipped);
  return builder.reshape(source, dims);
}

std::optional<Compact> compact_broadcast(GraphBuilder& builder, const Instruction& broadcast) {
  const Value source = broadcast.operand(0);
  if (is_scalar(source)) return Compact{source};
  const std::vector<int64_t>& at = broadcast.attributes().ints("dims");
  if (source.rank() == 1 && source.type().dims[0] == broadcast.type().dims[static_cast<size_t>(at[0])])
    return Compact{source, at[0]};
  return Compact{in_full_rank(builder, broadcast, -1)};
}

// One parameter for each block of a dim: a reshape joins blocks and the elements that it is spread over.
std::optional<Compact> compact_blocks(GraphBuilder& builder, const Instruction& reshape) {
  const Instruction& spread = *reshape.operand(0).def;
  const std::vector<Dim>&to = reshape.type().dims, &from = spread.type().dims;
  if (!spread.is(Opcode::BroadcastInDim) || from.size() != to.size() + 1 || !spread.type().is_static() ||
      !reshape.type().is_static())
    return std::nullopt;
  const size_t axis =
      static_cast<size_t>(std::mismatch(to.begin(), to.end(), from.begin()).first - to.begin());
  if (axis == to.size() || !std::equal(to.begin() + static_cast<std::ptrdiff_t>(axis) + 1, to.end(),
                                       from.begin() + static_cast<std::ptrdiff_t>(axis) + 2))
    return std::nullopt;
  Value blocks = in_full_rank(builder, spread, static_cast<int64_t>(axis) + 1);
  if (!blocks) return std::nullopt;
  if (blocks.rank() == 0) return Compact{blocks};
  return Compact{blocks, static_cast<int64_t>(axis), from[axis + 1].value()};
}

// A parameter that has the dims of the quantised value.
std::optional<Compact> compact(GraphBuilder& builder, Value value) {
  if (auto splat = splat_value(value)) return Compact{builder.scalar(value.dtype(), *splat)};
  if (is_scalar(value)) return Compact{value};
  if (value.def->is(Opcode::BroadcastInDim)) return compact_broadcast(builder, *value.def);
  if (value.def->is(Opcode::Reshape))
    if (auto blocks = compact_blocks(builder, *value.def)) return blocks;
  auto channel = channel_value(value, builder);
  if (!channel) return std::nullopt;
  return channel->dim < 0 ? Compact{channel->source} : Compact{channel->source, channel->dim};
}

bool are_within(const Literal& literal, IntegerBounds bounds) {
  if (!literal.values_may_be_used() || literal.is_opaque()) return false;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (double number = literal.get_double(i);
        !(number >= static_cast<double>(bounds.low) && number <= static_cast<double>(bounds.high)))
      return false;
  return true;
}

// A zero point in the integers' dtype; null: it has numbers beyond that.
Value narrowed(GraphBuilder& builder, Value zero_point, DType dtype) {
  while (zero_point.def->is(Opcode::Convert) && zero_point.dtype() != dtype &&
         holds_all(zero_point.dtype(), zero_point.def->operand(0).dtype()))
    zero_point = zero_point.def->operand(0);
  if (zero_point.dtype() == dtype) return zero_point;
  const Literal* literal = constant_literal(zero_point);
  const bool fits = literal && is_integer(zero_point.dtype()) && are_within(*literal, integer_bounds(dtype));
  return fits ? builder.constant(Literal::of<int64_t>(dtype, literal->dims(), literal->to_ints())) : Value{};
}

// A spelled zero point, which may be widened before or behind its broadcast.
std::optional<Compact> compact_zero_point(GraphBuilder& builder, Value value, DType dtype) {
  while (value.def->is(Opcode::Convert) && holds_all(value.dtype(), value.def->operand(0).dtype()))
    value = value.def->operand(0);
  auto found = compact(builder, value);
  if (!found) return std::nullopt;
  found->value = narrowed(builder, found->value, dtype);
  return found->value ? found : std::nullopt;
}

// Gives the value another parameter beside what it has; whether both fit in one op.
bool take_places(Dequantized& value, const Compact& parameter) {
  if (parameter.axis < 0) return parameter.value.rank() == 0 || value.block == 0;
  const bool has_places = value.block > 0 || (value.zero_point && value.zero_point.rank() > 0);
  if (has_places && (value.block != parameter.block || value.axis != parameter.axis)) return false;
  value.axis = parameter.axis;
  value.block = parameter.block;
  return true;
}

// convert(convert(x) - zero_point) : f32
Value raise_widened(Instruction& convert) {
  if (!convert.is(Opcode::Convert) || convert.type().dtype != DType::F32) return {};
  auto found = centered(convert.result());
  if (!found || found->shift != 0) return {};
  GraphBuilder builder(*convert.parent(), &convert);
  Dequantized raised;
  raised.integers = found->integers;
  if (found->zero_point && !is_splat_of(found->zero_point, 0)) {
    auto zero = compact_zero_point(builder, found->zero_point, found->integers.dtype());
    if (!zero || !take_places(raised, *zero)) return {};
    raised.zero_point = zero->value;
  }
  return dequantize_like(builder, raised.integers, raised);
}

// multiply(dequantize(x), scale), where that has no scale yet
Value raise_scaled(Instruction& multiply) {
  if (!multiply.is(Opcode::Multiply)) return {};
  for (int i : {0, 1}) {
    auto found = dequantized(multiply.operand(i));
    if (!found || found->scale) continue;
    GraphBuilder builder(*multiply.parent(), &multiply);
    auto scale = compact(builder, multiply.operand(1 - i));
    if (!scale || !take_places(*found, *scale)) continue;
    found->scale = scale->value;
    return dequantize_like(builder, found->integers, *found);
  }
  return {};
}

// convert(clamp(round(y / scale) + zero_point))
Value raise_quantized(Instruction& convert) {
  auto found = spelled_quantized(convert);
  if (!found || bit_width(found->dtype) > 16) return {};
  const IntegerBounds own = integer_bounds(found->dtype);
  const auto min = static_cast<double>(own.low), max = static_cast<double>(own.high);
  found->low = std::max(found->low, min);
  found->high = std::min(found->high, max);
  if (found->low > found->high || found->by.zero_point < own.low || found->by.zero_point > own.high)
    return {};
  GraphBuilder builder(*convert.parent(), &convert);
  return quantize_like(builder, found->y, *found);
}

// quantize(y / scale), where the op has no scale yet
Value join_division(Instruction& op) {
  auto found = quantized(op);
  if (!found || found->by.scale != 1 || !found->y.def->is(Opcode::Divide)) return {};
  auto scale = splat_value(found->y.def->operand(1));
  if (!scale || !(*scale > 0) || !(*scale < INFINITY)) return {};
  found->y = found->y.def->operand(0);
  found->by.scale = *scale;
  GraphBuilder builder(*op.parent(), &op);
  return quantize_like(builder, found->y, *found);
}

// The parameter of all elements, if they have one.
Value as_scalar(GraphBuilder& builder, Value parameter) {
  if (is_scalar(parameter)) return parameter;
  if (auto splat = splat_value(parameter)) return builder.scalar(parameter.dtype(), *splat);
  const Instruction& def = *parameter.def;
  return def.is(Opcode::BroadcastInDim) && is_scalar(def.operand(0)) ? def.operand(0) : parameter;
}

// Makes parameters scalars, and leaves out zero points of zero.
Value simplify_parameters(Instruction& op) {
  GraphBuilder builder(*op.parent(), &op);
  std::vector<Value> operands{op.operand(0)};
  bool changed = false, are_scalars = true;
  for (int i = 1; i < op.num_operands(); ++i) {
    const Value simple = as_scalar(builder, op.operand(i));
    const bool is_zero = i == 2 && is_splat_of(simple, 0);
    changed |= is_zero || !(simple == op.operand(i));
    if (is_zero) continue;
    are_scalars = are_scalars && is_scalar(simple);
    operands.push_back(simple);
  }
  if (!changed) return {};
  Attributes attributes = op.attributes();
  if (are_scalars) {
    attributes.erase("axis");
    attributes.erase("block");
  }
  return builder.op(op.opcode(), std::move(operands), std::move(attributes));
}

Value raise(Instruction& instruction, const PassOptions&) {
  if (!instruction.type().is_tensor()) return {};
  for (Value operand : instruction.operands())
    if (!operand.type().is_tensor()) return {};
  if (op_info(instruction.opcode()).op_class == OpClass::Quantization)
    if (Value simple = simplify_parameters(instruction)) return simple;
  if (Value value = raise_widened(instruction)) return value;
  if (Value value = raise_scaled(instruction)) return value;
  if (Value value = raise_quantized(instruction)) return value;
  return join_division(instruction);
}

} // namespace

bool raise_quantization(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, raise);
}

} // namespace firn
