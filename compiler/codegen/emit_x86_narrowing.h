// Floats that become integers of few bits on x86: instructions that saturate, and packs of several registers.
#pragma once

#include "compiler/codegen/instruction_set.h"

#include <optional>
#include <span>

namespace firn::codegen {

// InstructionSet's functions of these names, for vectors of f32.
llvm::Value* narrow_on_x86(const Machine& target, llvm::IRBuilder<>& ir, const kernel::Op& narrow,
                           llvm::Value* number, llvm::Type* integers);
std::optional<NarrowedBytes> joinable_on_x86(const Machine& target, const kernel::Op& narrow,
                                             llvm::Value* number, llvm::Type* integers);
llvm::Value* narrow_together_on_x86(llvm::IRBuilder<>& ir, std::span<const NarrowedBytes> all);

} // namespace firn::codegen
