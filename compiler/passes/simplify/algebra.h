// The rules of simplify-algebra by class of op. Each returns the value to use instead of the instruction's
// result, or no value. All operands and the result are tensors.
#pragma once

#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace firn {

Value simplify_arithmetic(Instruction& instruction, const PassOptions& options);
Value simplify_movement(Instruction& instruction, const PassOptions& options);
Value simplify_reduction(Instruction& instruction, const PassOptions& options);
// Rules of simplify_movement for concatenate, slice, pad and gather.
Value simplify_concatenate(Instruction& instruction);
Value simplify_slice(Instruction& instruction);
Value simplify_pad(Instruction& instruction);
Value simplify_gather(Instruction& instruction);

} // namespace firn
