// One module of PTX for all kernels of a program: what they have in common is there once.
#include "compiler/codegen/ptx.h"

#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/legalise.h"
#include "compiler/codegen/machine.h"
#include "compiler/codegen/run_guarded.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>

namespace firn::codegen {
namespace {

// PTX has letters, digits, '_' and '$' in names.
std::string ptx_symbol(const std::string& name, size_t number) {
  std::string symbol = "firn_" + std::to_string(number) + "_" + name;
  std::replace_if(
      symbol.begin(), symbol.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return symbol;
}

Result generate(const kernel::Program& program, const Machine& target, OptLevel level, PtxModule& ptx) {
  auto machine = create_machine(target, level);
  if (!machine) return machine.error();
  llvm::LLVMContext llvm_context;
  llvm::Module module("firn", llvm_context);
  module.setTargetTriple(target.triple);
  module.setDataLayout((*machine)->createDataLayout());
  ModuleContext context{llvm_context, module, target, /*text_section=*/""};
  const std::vector<CallFacts> facts = call_facts(program);
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    ptx.kernels.push_back(ptx_symbol(program.kernels[i]->name, i));
    KernelEmitter(context, *program.kernels[i], facts[i]).emit_blocks(ptx.kernels.back());
  }
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream)) return internal_error("emitted LLVM IR is broken: " + message);
  legalise(module, target, target);
  optimise(module, **machine, level);
  legalise(module, target, target);
  llvm::SmallVector<char, 0> output;
  BackendReport report = run_backend(module, **machine, /*assembly=*/true, output);
  if (!report.error.empty()) return internal_error("code generation: " + report.error);
  ptx.text.assign(output.begin(), output.end());
  return {};
}

} // namespace

Expected<PtxModule> emit_ptx(const kernel::Program& program, const Machine& target, OptLevel level) {
  PtxModule ptx;
  Result result;
  std::string failure = run_guarded([&] { result = generate(program, target, level, ptx); });
  if (!failure.empty())
    return internal_error("LLVM cannot generate PTX for " + target.display_name() + ": " + failure);
  if (!result) return result.error();
  return ptx;
}

} // namespace firn::codegen
