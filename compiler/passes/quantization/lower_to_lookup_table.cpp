// lower-to-lookup-table: looks up the results of functions of one byte.
//
//   %f = dequantize %x, %s : f32[8,64]                  %x : u8[8,64]
//   %g = multiply %f, (logistic %f)               ->    %y = gather <256 results>, %x : u8[8,64]
//   %y = quantize %g : u8[8,64]
//
// A byte has 256 values: any function from bytes to bytes is a table of them, evaluated once, here. It pays
// if the function has transcendentals or divisions; a function of little arithmetic stays in the kernel that
// computes the bytes.
//
// - Requires: quantised values are where they are computed (move-quantization).
// - Establishes: no costly chain of elementwise ops between two values of bytes alone.
// - Breaks: nothing (fold-constants evaluates the tables).
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/byte_function.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/byte_values.h"
#include "compiler/plan/profitability.h"

namespace firn {
namespace {

Value lower_to_table(Instruction& instruction, const PassOptions&) {
  Value result = instruction.result();
  if (!plan::is_byte(result) || !result.type().is_static() ||
      !plan::is_byte_table_profitable(result.type().num_elements()))
    return {};
  for (bool through_tables : {false, true}) {
    auto function = ByteFunction::find(result, through_tables);
    if (!function || !function->is_costly()) continue;
    GraphBuilder builder(*instruction.parent(), &instruction);
    return function->look_up(builder, function->table(builder));
  }
  return {};
}

} // namespace

bool lower_to_lookup_table(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, lower_to_table);
}

} // namespace firn
