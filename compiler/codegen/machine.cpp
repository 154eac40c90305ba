// Configures LLVM: no fusion of roundings, no calls of library functions, no loop passes that second-guess
// schedules.
#include "compiler/codegen/machine.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

namespace firn::codegen {

namespace {

// In loops too long to overlap with their next iterations LLVM's scheduler would prefer short latencies to
// few registers. So would the pass that adds the integers of several steps to each other before it adds them
// to a sum. Firn's loops carry enough independent work, and their tiles take all registers there are.
void schedule_for_registers() {
  auto& options = llvm::cl::getRegisteredOptions();
  for (const char* name : {"misched-cyclicpath", "x86-machine-combiner"})
    if (auto found = options.find(name); found != options.end())
      static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(false);
}

void initialise_backends() {
  static const bool done = [] {
    schedule_for_registers();
    LLVMInitializeX86Target(), LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64Target(), LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeARMTarget(), LLVMInitializeARMAsmPrinter();
    LLVMInitializeRISCVTarget(), LLVMInitializeRISCVAsmPrinter();
    LLVMInitializeNVPTXTargetInfo(), LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXTarget(), LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)done;
}

llvm::CodeGenOptLevel backend_level(OptLevel level) {
  switch (level) {
  case OptLevel::O0: return llvm::CodeGenOptLevel::None;
  case OptLevel::O1: return llvm::CodeGenOptLevel::Less;
  case OptLevel::O3: return llvm::CodeGenOptLevel::Aggressive;
  case OptLevel::O2:
  case OptLevel::Os: break;
  }
  return llvm::CodeGenOptLevel::Default;
}

llvm::OptimizationLevel pipeline_level(OptLevel level) {
  switch (level) {
  case OptLevel::O0: return llvm::OptimizationLevel::O0;
  case OptLevel::O1: return llvm::OptimizationLevel::O1;
  case OptLevel::O2: return llvm::OptimizationLevel::O2;
  case OptLevel::O3: return llvm::OptimizationLevel::O3;
  case OptLevel::Os: break;
  }
  return llvm::OptimizationLevel::Os;
}

std::string riscv_abi(const Machine& target) {
  std::string base = target.pointer_bits == 64 ? "lp64" : "ilp32";
  return base + (target.cpu.has_double ? "d" : target.cpu.has_float ? "f" : "");
}

llvm::TargetLibraryInfoImpl no_library(const llvm::Module& module) {
  llvm::TargetLibraryInfoImpl library{llvm::Triple(module.getTargetTriple())};
  library.disableAllFunctions();
  return library;
}

// Collects frame sizes, which the backend reports as warnings when asked to by "warn-stack-size".
class Listener : public llvm::DiagnosticHandler {
public:
  explicit Listener(BackendReport& report) : report_(report) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (const auto* stack = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(&info)) {
      report_.stack_bytes.emplace_back(stack->getFunction().getName().str(),
                                       static_cast<int64_t>(stack->getStackSize()));
    } else if (info.getSeverity() == llvm::DS_Error && report_.error.empty()) {
      llvm::raw_string_ostream stream(report_.error);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

private:
  BackendReport& report_;
};

} // namespace

Expected<std::unique_ptr<llvm::TargetMachine>> create_machine(const Machine& target, OptLevel level) {
  initialise_backends();
  std::string message;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, message);
  if (!found) return usage_error("target '" + target.triple + "' is not supported: " + message);
  llvm::TargetOptions settings;
  settings.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  settings.ExceptionModel = llvm::ExceptionHandling::None;
  settings.MCOptions.AsmVerbose = true; // comments tell spills from arrays on the stack
  llvm::Triple triple(target.triple);
  if (triple.isRISCV()) settings.MCOptions.ABIName = riscv_abi(target);
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, target.processor, target.features, settings,
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small, backend_level(level)));
  if (!machine) return usage_error("target '" + target.triple + "' cannot generate code");
  // ARM's assembler would otherwise write an (empty) unwind table entry for every function.
  if (triple.isARM() || triple.isThumb()) {
    const_cast<llvm::MCAsmInfo*>(machine->getMCAsmInfo())->setExceptionsType(llvm::ExceptionHandling::None);
  }
  return machine;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, OptLevel level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopInterleaving = tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling = false;
  tuning.MergeFunctions = false;
  llvm::PassBuilder passes(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(no_library(module)); });
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graphs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager pipeline = level == OptLevel::O0
                                         ? passes.buildO0DefaultPipeline(llvm::OptimizationLevel::O0)
                                         : passes.buildPerModuleDefaultPipeline(pipeline_level(level));
  pipeline.run(module, modules);
}

BackendReport run_backend(llvm::Module& module, llvm::TargetMachine& machine, bool assembly,
                          llvm::SmallVectorImpl<char>& output) {
  BackendReport report;
  module.getContext().setDiagnosticHandler(std::make_unique<Listener>(report));
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(no_library(module)));
  llvm::raw_svector_ostream stream(output);
  auto kind = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind)) {
    report.error = "the backend cannot write this kind of file";
    return report;
  }
  passes.run(module);
  return report;
}

} // namespace firn::codegen
