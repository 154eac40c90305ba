// Bounds and zero points of narrow ops, in the IR that every architecture has.
#pragma once

#include "compiler/kernel/kernel.h"

#include <llvm/IR/IRBuilder.h>

namespace firn::codegen {

// The larger of `number` and the op's low bound, both without the zero point; a NaN becomes the bound.
llvm::Value* kept_above(llvm::IRBuilder<>& ir, llvm::Value* number, const kernel::Op& narrow);
// The smaller of `number` and `high`; a NaN stays.
llvm::Value* kept_below(llvm::IRBuilder<>& ir, llvm::Value* number, int64_t high);
// The integers plus a number.
llvm::Value* moved(llvm::IRBuilder<>& ir, llvm::Value* integers, int64_t added);

} // namespace firn::codegen
