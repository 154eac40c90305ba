// Rewrites LLVM IR that the backend would turn into calls of compiler-runtime functions.
#pragma once

#include "compiler/codegen/kernel_emitter.h"

namespace firn::codegen {

// Divisions, shifts, multiplications and float conversions of integers wider than the target's registers
// become code; idempotent, so that it can run again on what the optimiser made. `baseline`: the least able of
// the CPUs that the module's functions are for.
void legalise(llvm::Module& module, const Machine& target, const Machine& baseline);

} // namespace firn::codegen
