// Conversions between fixed-point numbers and vectors of floats.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace firn::codegen {

// Whether `instruction` is such a conversion in two steps: words as f32 times a power of two below one, or
// f32 times a power of two above one as integers.
bool is_fixed_point_conversion(const llvm::Instruction& instruction);

// Converts by MVE's instruction for both steps. LLVM 19 joins them as well, but gives the count of bits
// behind the point as a constant that a register holds if other code of the block has the same one; the
// instruction then counts with the number of the register.
llvm::Value* fixed_point_conversion(llvm::IRBuilder<>& ir, const llvm::Instruction& instruction);

} // namespace firn::codegen
