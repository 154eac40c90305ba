// Kernel IR to machine code: one entry function per program, one function per kernel, constants. The only
// place that knows LLVM.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/support/byte_sink.h"
#include "compiler/support/goals.h"
#include "compiler/target/target_info.h"

#include <string>
#include <utility>
#include <vector>

namespace firn::codegen {

// Code for one more CPU in the same object.
struct VariantCode {
  TargetInfo target;
  const kernel::Program*
      program; // reads the same constants, inputs and outputs; its kernels have names of their own
};

// Code for runs with certain extents, in the place of that of one CPU for all. Its program has the same
// constants, inputs, outputs and extents; its kernels' names are its own.
struct SpecializedCode {
  size_t variant; // the CPU, as of firn_rt2_call::variant
  const kernel::Program* program;
  std::vector<std::pair<size_t, int64_t>> extents; // which of the program's, and what they are
};

// The code of one more entry function, for the first CPU and the others. Its programs read the constants of
// the first; the names of their kernels are their own.
struct EntryCode {
  std::string run_symbol;
  const kernel::Program* program;
  std::vector<VariantCode> variants;
};

struct CodegenOptions {
  TargetInfo target;
  OptLevel opt_level = OptLevel::O3;
  // Names of the functions for the header; see include/firn/abi.h for their types.
  std::string run_symbol, weights_symbol;
  std::string section_suffix; // appended to section names: .text.firn.<suffix>
  // Whether a shared library made of the object exports the functions.
  bool exported = false;
  // Builds for measuring: firn_rt2_call::profile gets the cycle counter before the first top-level step and
  // after each.
  bool profile = false;
  // Whether rounding to bf16 may take subnormal numbers for zeros, as the CPUs' products of bf16 do.
  bool flushes_bf16 = false;
  // The program that prepares the weights where the model runs (prepare_program.h); null: none. Its constants
  // are then what the object holds, and the function of this name runs it.
  const kernel::Program* prepare = nullptr;
  std::string prepare_symbol = {};
  // The object holds no constants: whoever loads it packs them where the call says that they are.
  bool omits_weights = false;
  // For other CPUs than `target`, the least able last, which any CPU can follow that runs the object. With
  // these, firn_rt2_call::variant says whose code runs: 0 that for `target`, 1 the first of these.
  std::vector<VariantCode> variants = {};
  // The first that is for a run's CPU and extents runs.
  std::vector<SpecializedCode> specializations = {};

  std::vector<EntryCode> entries = {};
  // Threads that generate code; 0: as many as the machine runs at once. They change no byte of an object.
  unsigned jobs = 0;

  bool has_choice() const {
    return !variants.empty() || !specializations.empty();
  } // whether programs are chosen among at run time

  const TargetInfo& target_of(size_t variant) const {
    return variant == 0 ? target : variants[variant - 1].target;
  }
  const TargetInfo& baseline_target() const { return variants.empty() ? target : variants.back().target; }

  // The program whose constants the object holds.
  const kernel::Program& embedded(const kernel::Program& program) const {
    return prepare ? *prepare : program;
  }
};

// The program as LLVM IR text (before optimisation), and as assembly, with the code of other CPUs. For
// --emit=llvm and --emit=asm. One module holds all of it.
Expected<std::string> emit_llvm_text(const kernel::Program& program, const CodegenOptions& options);
Expected<std::string> emit_assembly(const kernel::Program& program, const CodegenOptions& options);

struct ObjectFacts {
  int64_t text_bytes = 0;   // machine code
  int64_t rodata_bytes = 0; // constants of the code itself, weights excluded
  int64_t object_bytes = 0;
  uint64_t weights_hash = 0; // hash of the constants that the object holds
  int64_t stack_bytes = 0;   // deepest frame of entry plus kernel
  std::vector<std::pair<std::string, int64_t>> kernel_text_bytes; // by kernel name
  std::vector<int64_t>
      specialization_text_bytes; // kernels that each of CodegenOptions::specializations shares with none
  std::vector<std::string> undefined_symbols; // sorted
  std::vector<std::string> custom_symbols;    // the program's own functions among these
};

// Writes the object to `sink`; in ELF the constants are streamed one at a time into a 64-byte aligned
// read-only section. Fails with Fault::Internal when the object would need a symbol outside
// memcpy, memset, memmove, firn_rt2_* and what the platform's start-up code brings, or has a constructor,
// writable data or unwind tables, and when LLVM fails; nothing is written then.
Expected<ObjectFacts> emit_object(const kernel::Program& program, const CodegenOptions& options,
                                  ByteSink& sink);
// Writes the object as a file.
Expected<ObjectFacts> emit_object(const kernel::Program& program, const CodegenOptions& options,
                                  const std::string& path);

} // namespace firn::codegen
