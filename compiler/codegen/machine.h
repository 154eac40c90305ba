// LLVM's target machine and the passes that turn a module into machine code.
#pragma once

#include "compiler/codegen/codegen.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

namespace firn::codegen {

// LLVM's machine for the target's triple, CPU and features; a usage error if LLVM has no backend for the
// triple.
Expected<std::unique_ptr<llvm::TargetMachine>> create_machine(const Machine& target, OptLevel level);

// Runs LLVM's pipeline of the level, without its vectorisers and unrollers.
void optimise(llvm::Module& module, llvm::TargetMachine& machine, OptLevel level);

// Frame sizes in bytes by function name, and the first error of the backend; empty if there is none.
struct BackendReport {
  std::vector<std::pair<std::string, int64_t>> stack_bytes;
  std::string error;
};
// Appends to `output` an object, or with `assembly` its text. Lowers `module` in place: it is spent then.
BackendReport run_backend(llvm::Module& module, llvm::TargetMachine& machine, bool assembly,
                          llvm::SmallVectorImpl<char>& output);

} // namespace firn::codegen
