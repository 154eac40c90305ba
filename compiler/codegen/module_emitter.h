// Emits a program, with the one that prepares its weights, as one LLVM module: their kernels and entry
// functions, and the function that finds the embedded weights.
#pragma once

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/merge_equal_code.h"

#include <memory>

namespace firn::codegen {

// Section of the embedded weights: beyond the reach of 32-bit offsets on x86-64, so that gigabytes link.
std::string weights_section(const CodegenOptions& options);

struct EmittedModule {
  std::unique_ptr<llvm::Module> module;
  std::vector<std::string> entry_symbols;  // functions that run programs
  std::vector<std::string> kernel_symbols; // kernels by number; those of the other programs follow
  std::vector<std::string> task_symbols;   // functions that run tasks of shared kernels
  // Functions in the programs of several CPUs whose kernels are equal.
  std::vector<std::vector<CpuFunction>> equal_kernels;
};

// `embed_weights`: the constants' bytes go into the module itself, for object formats that Firn does not
// write itself. Otherwise a placeholder section stands where they will be. `features`: those of the target,
// then those of each of options.variants.
EmittedModule emit_module(const kernel::Program& program, const CodegenOptions& options,
                          std::span<const TargetFeatures> features, const llvm::DataLayout& layout,
                          llvm::LLVMContext& context, bool embed_weights);

// Bytes of the placeholder.
inline constexpr int weights_placeholder_bytes = 64;

} // namespace firn::codegen
