// Facts that hold at every call of a kernel, and the arguments that its function takes for lack of them. A
// kernel and its callers are generated apart, so LLVM cannot find these facts by itself.
#pragma once

#include "compiler/kernel/kernel.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace firn::codegen {

// Facts about a parameter of a kernel that hold at every call.
struct ParameterFacts {
  int alignment = 1;
  bool no_alias = true;
};

struct CallFacts {
  std::vector<ParameterFacts> parameters;
  // By scalar argument, the value that all calls pass. Scalar arguments are a kernel's extents, then the ends
  // of its ranges of phases and of iterations, if it has such.
  std::vector<std::optional<int64_t>> scalars;
  bool is_called = false;

  std::string text() const;
};

// The facts about each kernel of a program.
std::vector<CallFacts> call_facts(const kernel::Program& program);

// Whether the kernel's function takes an argument: by pointer parameter, then by scalar argument. It takes
// none that its body does not read, nor one that is the same at every call.
std::vector<bool> taken_arguments(const kernel::Kernel& kernel, const CallFacts& facts);

// The function of a kernel, or its declaration.
struct KernelFunction {
  llvm::Function* function = nullptr;
  std::vector<bool> taken;

  // `arguments`: a pointer for each parameter and a word for each scalar argument.
  llvm::CallInst* call(llvm::IRBuilder<>& ir, std::span<llvm::Value* const> arguments) const;
};

} // namespace firn::codegen
