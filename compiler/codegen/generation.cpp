// See generation.h.
#include "compiler/codegen/generation.h"

#include "compiler/codegen/hide_outer_addresses.h"
#include "compiler/codegen/kernel_thunk.h"
#include "compiler/codegen/legalise.h"
#include "compiler/codegen/run_guarded.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

namespace firn::codegen {
namespace {

Diagnostic llvm_failure(const CodegenOptions& options, const std::string& subject,
                        const std::string& failure) {
  return internal_error("LLVM cannot generate code for " + options.target.display_name() + " (" +
                        options.target.triple + ")" + subject + ": " + failure);
}

Result emit_module(Generation& generation, const CodegenOptions& options,
                   const std::function<EmittedModule(Generation&)>& emit) {
  if (!generation.machine) {
    auto machine = create_machine(options.baseline_target(), options.opt_level);
    if (!machine) return machine.error();
    generation.machine = std::move(*machine);
  }
  generation.emitted = emit(generation);
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(*generation.emitted.module, &stream))
    return internal_error("emitted LLVM IR is broken: " + message);
  return {};
}

Result compile(Generation& generation, const CodegenOptions& options, bool assembly) {
  llvm::Module& module = *generation.emitted.module;
  // Functions of several CPUs take what the least able one lacks, and all workarounds.
  legalise(module, options.target, options.baseline_target());
  optimise(module, *generation.machine, options.opt_level);
  legalise(module, options.target, options.baseline_target());
  if (const std::string& thunk = generation.emitted.thunk; !thunk.empty())
    generation.emitted.kernel_symbols = {settle_thunk(module, thunk)};
  if (options.opt_level != OptLevel::O0) hide_outer_addresses(module);
  generation.merged = merge_equal_code(module, *generation.machine, generation.emitted.equal_functions);
  generation.report = run_backend(module, *generation.machine, assembly, generation.output);
  if (!generation.report.error.empty()) return internal_error("code generation: " + generation.report.error);
  return {};
}

} // namespace

Expected<std::unique_ptr<Generation>> generate(const CodegenOptions& options, Stage stage,
                                               const std::string& subject,
                                               const std::function<EmittedModule(Generation&)>& emit,
                                               std::unique_ptr<llvm::TargetMachine> machine) {
  auto generation = std::make_unique<Generation>();
  generation->machine = std::move(machine);
  Result result;
  std::string failure = run_guarded([&] {
    result = emit_module(*generation, options, emit);
    if (result && stage != Stage::Module) result = compile(*generation, options, stage == Stage::Assembly);
  });
  if (!failure.empty()) {
    (void)generation.release();
    return llvm_failure(options, subject, failure);
  }
  if (!result) return result.error();
  return generation;
}

} // namespace firn::codegen
