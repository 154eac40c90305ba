// Keeps LLVM's strength reduction from weighing what lies outside of a loop.
#pragma once

#include <llvm/IR/Module.h>

namespace firn::codegen {

// In long loops that only read memory, addresses from outside of the loop become values of which no more is
// known. Runs behind the optimiser, ahead of the backend.
void hide_outer_addresses(llvm::Module& module);

} // namespace firn::codegen
