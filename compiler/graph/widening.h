// Which conversions of constants are left to those who read them: whoever finds the bytes multiplies them as
// they are.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Whether bytes become something wider: they are the integers of quantised weights, but where they are a
// vector.
inline bool widens_bytes(const Instruction& instruction) {
  if (!instruction.is(Opcode::Convert) && !instruction.is(Opcode::Dequantize)) return false;
  const Type &from = instruction.operand(0).type(), &to = instruction.type();
  return is_integer(from.dtype) && from.dtype != DType::Bool && bit_width(from.dtype) <= 8 &&
         bit_width(to.dtype) > 8 && from.rank() > 1;
}

} // namespace firn
