// lower-quantization: computes quantised values by plain instructions.
//
//   %q = quantize %x, %s, %z {to = u8} : u8[64]
//     ->
//   %r = round_nearest_even (divide %x, broadcast(%s)) : f32[64]
//   %q = convert (clamp 0, (add %r, broadcast(convert %z)), 255) : u8[64]
//
//   %f = dequantize %q, %s, %z : f32[64]
//     ->
//   %d = subtract (convert %q), broadcast(convert %z) : i32[64]
//   %f = multiply (convert %d : f32[64]), broadcast(%s)
//
// - Requires: nothing.
// - Establishes: no quantize and no dequantize is left.
// - Breaks: nothing. The results are those of the evaluator, bit for bit.
#include "compiler/graph/quantization.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

Value lower(Instruction& instruction, const PassOptions&) {
  if (op_info(instruction.opcode()).op_class != OpClass::Quantization) return {};
  GraphBuilder builder(*instruction.parent(), &instruction);
  return quantization_body(builder, instruction);
}

} // namespace

bool lower_quantization(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, lower);
}

} // namespace firn
