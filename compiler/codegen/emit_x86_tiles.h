// Matrix registers of x86: AMX.
#pragma once

#include "compiler/kernel/kernel.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace firn::codegen {

void configure_x86_tiles(llvm::Module& module, llvm::IRBuilder<>& ir,
                         const std::vector<kernel::MatrixTile>& tiles);
void release_x86_tiles(llvm::IRBuilder<>& ir);
// `pointer`: the memory of a load or store, whose elements have `element_bytes`; null for other ops.
void emit_x86_tile(llvm::IRBuilder<>& ir, const kernel::Op& op, llvm::Value* pointer, int64_t element_bytes);

} // namespace firn::codegen
