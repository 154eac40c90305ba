// The base of emitters of functions that a caller of the object enters: it sets their attributes, and loads
// fields of the call (firn/abi.h).
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel_emitter.h"

#include <llvm/IR/IRBuilder.h>

#include <string>
#include <vector>

namespace firn::codegen {

class EntryEmitter {
protected:
  EntryEmitter(ModuleContext& context, const CodegenOptions& options)
      : context_(context), options_(options), ir_(context.context) {}

  // The fields of firn_rt2_call, a word each.
  enum class Field : unsigned {
    Size,
    Arena,
    Weights,
    Inputs,
    Outputs,
    Extents,
    Executor,
    Profile,
    Variant,
    Parameters
  };

  llvm::Type* pointer() const { return llvm::PointerType::getUnqual(context_.context); }
  llvm::ConstantInt* word(int64_t value) const {
    return llvm::ConstantInt::getSigned(context_.index_type(), value);
  }

  // The function that is emitted from here on.
  llvm::Function* begin(const std::string& name, llvm::Type* result,
                        const std::vector<llvm::Type*>& parameters);
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(context_.context, name, function_);
  }

  llvm::Value* load(llvm::Type* type, llvm::Value* call, Field field) {
    return ir_.CreateLoad(type, ir_.CreateConstGEP1_32(pointer(), call, static_cast<unsigned>(field)));
  }
  llvm::Value* load_pointer(llvm::Value* call, Field field) { return load(pointer(), call, field); }
  // Loads one of the call's extents.
  llvm::Value* load_extent(llvm::Value* table, size_t number) {
    return ir_.CreateLoad(context_.index_type(),
                          ir_.CreateConstGEP1_64(context_.index_type(), table, number));
  }

  ModuleContext& context_;
  const CodegenOptions& options_;
  llvm::IRBuilder<> ir_;
  llvm::Function* function_ = nullptr;
};

// The function that runs a program, with its kernels. `profile`: it stamps its steps. `least`: of kernels
// that are for the least able CPU.
void emit_program(ModuleContext& context, ModuleContext& baseline, const kernel::Program& program,
                  const CodegenOptions& options, const std::string& symbol, bool profile);

// The function of that symbol, which runs the code that the call's variant and extents ask for: the first of
// `specializations` (those of the options) that is for both, else the one of `entries` for the variant.
void emit_choice(ModuleContext& context, const CodegenOptions& options, const std::string& symbol,
                 const std::vector<llvm::Function*>& entries,
                 const std::vector<llvm::Function*>& specializations);

// The function that finds the program's constants. `embed`: they are in the module (emit_module).
void emit_weights(ModuleContext& context, const kernel::Program& program, const CodegenOptions& options,
                  bool embed);

} // namespace firn::codegen
