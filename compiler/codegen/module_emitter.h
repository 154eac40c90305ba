// Emits a program, with the one that prepares its weights, as one LLVM module: their kernels and entry
// functions, and the function that finds the embedded weights.
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/merge_equal_code.h"
#include "compiler/codegen/parts.h"

#include <memory>

namespace firn::codegen {

// Section of the code; empty: the object format's own.
std::string text_section(const CodegenOptions& options);
// Section of the embedded weights: beyond the reach of 32-bit offsets on x86-64, so that gigabytes link.
std::string weights_section(const CodegenOptions& options);

struct EmittedModule {
  std::unique_ptr<llvm::Module> module;
  std::vector<std::string> entry_symbols;  // functions that run programs
  std::vector<std::string> kernel_symbols; // kernels by number; those of the other programs follow
  std::vector<std::string> task_symbols;   // functions that run tasks of shared kernels
  // Functions of kernels with equal texts in the programs of several CPUs, and functions of their tasks.
  std::vector<std::vector<CpuFunction>> equal_functions;
  std::string thunk; // name of the thunk of the module's only kernel; empty: there is none
};

// `embed_weights`: the constants' bytes go into the module itself, for object formats that Firn does not
// write itself. Otherwise a placeholder section stands where they will be.
// `parts`: names of the functions of kernels, which have modules of their own; null: they are in this one.
EmittedModule emit_module(const kernel::Program& program, const CodegenOptions& options,
                          const llvm::DataLayout& layout, llvm::LLVMContext& context, bool embed_weights,
                          const KernelNames* parts);

// The module of one kernel.
EmittedModule emit_module(const KernelPart& part, const CodegenOptions& options,
                          const llvm::DataLayout& layout, llvm::LLVMContext& context);

// Bytes of the placeholder.
inline constexpr int weights_placeholder_bytes = 64;

} // namespace firn::codegen
