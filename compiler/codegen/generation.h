// The way of one module through LLVM: emit, legalise, optimise, legalise what the optimiser made, run the
// backend.
#pragma once

#include "compiler/codegen/machine.h"
#include "compiler/codegen/module_emitter.h"

#include <llvm/IR/LLVMContext.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace firn::codegen {

// Everything that the generation of one module owns.
struct Generation {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine; // for the least able CPU; functions name their own
  EmittedModule emitted;
  std::map<std::string, std::string> merged; // merge_equal_code()
  llvm::SmallVector<char, 0> output;
  BackendReport report;
};

enum class Stage : uint8_t { Module, Assembly, Object };

// Everything up to `stage` of the module that `emit` makes. `subject` names the module in messages, as in ",
// in kernel 'k'". What a failure of LLVM leaves behind cannot be destroyed any more and stays. A `machine`
// that another generation for the same options has finished with knows the CPU already; null: a new one is
// made.
Expected<std::unique_ptr<Generation>> generate(const CodegenOptions& options, Stage stage,
                                               const std::string& subject,
                                               const std::function<EmittedModule(Generation&)>& emit,
                                               std::unique_ptr<llvm::TargetMachine> machine = nullptr);

} // namespace firn::codegen
