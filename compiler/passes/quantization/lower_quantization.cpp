// lower-quantization: computes quantised values by plain instructions.
//
//   %q = quantize %x, %s, %z {to = u8} : u8[64]            %z : u8[], the constant 3
//     ->
//   %q = narrow (divide %x, broadcast(%s)) {high = 255, low = 0, to = u8, zero = 3} : u8[64]
//
//   %q = quantize %x, %s, %z {axis = 0, to = u8} : u8[64]  %z : u8[64], or a z that a run computes
//     ->
//   %r = round_nearest_even (divide %x, broadcast(%s)) : f32[64]
//   %q = convert (clamp 0, (add %r, broadcast(convert %z)), 255) : u8[64]
//
//   %f = dequantize %q, %s, %z : f32[64]
//     ->
//   %d = subtract (convert %q), broadcast(convert %z) : i32[64]
//   %f = multiply (convert %d : f32[64]), broadcast(%s)
//
// - Requires: nothing; what reads quantised values comes before.
// - Establishes: no quantize and no dequantize is left.
// - Breaks: nothing. The results of numbers are those of the evaluator, bit for bit.
#include "compiler/graph/quantization.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

// The integers as a narrow; no value: of other types, or by a zero point that is no one number.
Value narrowed(GraphBuilder& builder, const Instruction& quantize, IntegerBounds bounds) {
  const DType to = quantize.type().dtype;
  auto zero = quantize.num_operands() == 3 ? splat_value(quantize.operand(2)) : std::optional(0.0);
  if (!is_integer(to) || bit_width(to) < 8 || !zero || quantize.operand(0).dtype() == DType::F64) return {};
  Attributes attributes{{"high", bounds.high}, {"low", bounds.low}, {"to", to}};
  if (*zero != 0) attributes.set("zero", static_cast<int64_t>(*zero));
  return builder.op(Opcode::Narrow, {divided_by_scale(builder, quantize)}, std::move(attributes));
}

Value lowered(GraphBuilder& builder, const Instruction& quantize, IntegerBounds bounds) {
  Value integers = narrowed(builder, quantize, bounds);
  return integers ? integers : bounded_quantize_body(builder, quantize, bounds);
}

// Integers are clamped as floats, which are clamped in any case.
Value clamped_body(GraphBuilder& builder, const Instruction& clamp, const Instruction& quantize) {
  const IntegerBounds own = integer_bounds(quantize.type().dtype);
  auto bound = [&](int i) {
    return std::clamp(static_cast<int64_t>(*splat_value(clamp.operand(i))), own.low, own.high);
  };
  return lowered(builder, quantize, {bound(0), bound(2)});
}

Value lower(Instruction& instruction, const PassOptions&) {
  if (!instruction.type().is_tensor()) return {};
  GraphBuilder builder(*instruction.parent(), &instruction);
  if (const Instruction* quantize = bounded_quantize(instruction))
    return clamped_body(builder, instruction, *quantize);
  if (op_info(instruction.opcode()).op_class != OpClass::Quantization || is_bounded_behind(instruction))
    return {};
  if (instruction.is(Opcode::Quantize) && is_integer(instruction.type().dtype))
    return lowered(builder, instruction, integer_bounds(instruction.type().dtype));
  return quantization_body(builder, instruction);
}

} // namespace

bool lower_quantization(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, lower);
}

} // namespace firn
