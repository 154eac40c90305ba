// The module of an object: the code of its programs for every CPU, and the functions around them.
#include "compiler/codegen/entry_emitter.h"
#include "compiler/codegen/module_emitter.h"

#include "compiler/codegen/kernel_thunk.h"
#include "compiler/kernel/kir_text.h"

#include <llvm/TargetParser/Triple.h>

#include <map>

namespace firn::codegen {

using namespace kernel;

namespace {

ModuleContext module_context(llvm::Module& module, const CodegenOptions& options, size_t variant) {
  return {module.getContext(), module, options.target_of(variant), text_section(options),
          options.flushes_bf16};
}

// Emits the programs of one module.
class ModuleEmitter {
public:
  ModuleEmitter(EmittedModule& result, const CodegenOptions& options, const KernelNames* parts)
      : result_(result), options_(options), parts_(parts) {}

  void emit(const Program& program, bool embed_weights) {
    const Program* prepare = options_.prepare;
    if (options_.has_choice())
      emit_choices(program, prepare ? nullptr : &embed_weights);
    else
      emit_program(program, options_.run_symbol, 0, prepare ? nullptr : &embed_weights);
    for (size_t i = 0; i < options_.entries.size(); ++i) emit_further_entry(i);
    if (prepare) emit_program(*prepare, options_.prepare_symbol, options_.variants.size(), &embed_weights);
    if (options_.has_choice() || !options_.entries.empty()) gather_equal_kernels(program);
  }

private:
  const Program& program_of(const Program& first, size_t variant) const {
    return variant == 0 ? first : *options_.variants[variant - 1].program;
  }

  static const Program& program_of(const EntryCode& entry, size_t variant) {
    return variant == 0 ? *entry.program : *entry.variants[variant - 1].program;
  }

  // Functions of kernels with the same text, and those of their tasks.
  void gather_equal_kernels(const Program& program) {
    std::map<std::string, std::vector<CpuFunction>> kernels, tasks;
    auto gather = [&](const Program& own, size_t variant) {
      for (const auto& kernel : own.kernels) {
        std::string text = kernel_text(*kernel, /*anonymous=*/true);
        uint64_t features = options_.target_of(variant).required_cpu_features;
        if (kernel->tasks > 1) tasks[text].push_back({task_symbol(*kernel), features});
        if (kernel->is_for_baseline) features = options_.baseline_target().required_cpu_features;
        kernels[std::move(text)].push_back({kernel_symbol(*kernel), features});
      }
    };
    for (size_t variant = options_.variants.size() + 1; variant-- > 0;) {
      gather(program_of(program, variant), variant);
      for (const SpecializedCode& specializations : options_.specializations)
        if (specializations.variant == variant) gather(*specializations.program, variant);
      for (const EntryCode& entry : options_.entries) gather(program_of(entry, variant), variant);
    }
    for (auto* groups : {&kernels, &tasks}) // tasks call kernels
      for (auto& [text, functions] : *groups)
        if (functions.size() > 1) result_.equal_functions.push_back(std::move(functions));
  }

  // `embed_weights`: as of emit_module, for the program whose constants the object holds.
  void emit_program(const Program& program, const std::string& symbol, size_t variant,
                    const bool* embed_weights) {
    ModuleContext context = this->context(variant);
    ModuleContext baseline = this->context(options_.variants.size());
    codegen::emit_program(context, baseline, program, options_, symbol,
                          options_.profile && &program != options_.prepare);
    if (embed_weights) emit_weights(context, program, options_, *embed_weights);
    result_.entry_symbols.push_back(symbol);
    for (const auto& kernel : program.kernels) {
      result_.kernel_symbols.push_back(kernel_symbol(*kernel));
      if (kernel->tasks > 1) result_.task_symbols.push_back(task_symbol(*kernel));
    }
  }

  ModuleContext context(size_t variant) const {
    ModuleContext context = module_context(*result_.module, options_, variant);
    if (!options_.variants.empty()) context.suffix = "." + std::to_string(variant);
    context.parts = parts_;
    return context;
  }

  llvm::Function* emit_entry(const Program& program, const std::string& symbol, size_t variant) {
    emit_program(program, symbol, variant, nullptr);
    llvm::Function* entry = result_.module->getFunction(symbol);
    entry->setLinkage(llvm::GlobalValue::InternalLinkage);
    entry->setVisibility(llvm::GlobalValue::DefaultVisibility);
    entry->addFnAttr(llvm::Attribute::NoInline);
    return entry;
  }

  void emit_further_entry(size_t number) {
    const EntryCode& entry = options_.entries[number];
    if (options_.variants.empty()) return emit_program(*entry.program, entry.run_symbol, 0, nullptr);
    std::vector<llvm::Function*> functions;
    for (size_t variant = 0; variant <= options_.variants.size(); ++variant)
      functions.push_back(emit_entry(program_of(entry, variant),
                                     "firn.run." + std::to_string(variant) + "." + std::to_string(number),
                                     variant));
    ModuleContext context = this->context(options_.variants.size());
    emit_choice(context, options_, entry.run_symbol, functions, {});
    result_.entry_symbols.push_back(entry.run_symbol);
  }

  // The code of every CPU and of certain extents, and the function that calls what the call asks for.
  void emit_choices(const Program& program, const bool* embed_weights) {
    std::vector<llvm::Function*> entries, specializations;
    for (size_t variant = 0; variant <= options_.variants.size(); ++variant)
      entries.push_back(
          emit_entry(program_of(program, variant), "firn.run." + std::to_string(variant), variant));
    for (const SpecializedCode& code : options_.specializations)
      specializations.push_back(
          emit_entry(*code.program, "firn.run.hot." + std::to_string(specializations.size()), code.variant));
    // The code of the baseline CPU finds the weights for all.
    ModuleContext context = this->context(options_.variants.size());
    emit_choice(context, options_, options_.run_symbol, entries, specializations);
    if (embed_weights) emit_weights(context, program, options_, *embed_weights);
    result_.entry_symbols.push_back(options_.run_symbol);
  }

  EmittedModule& result_;
  const CodegenOptions& options_;
  const KernelNames* parts_;
};

EmittedModule empty_module(const CodegenOptions& options, const llvm::DataLayout& layout,
                           llvm::LLVMContext& context) {
  EmittedModule result;
  result.module = std::make_unique<llvm::Module>("firn", context);
  result.module->setTargetTriple(options.target.triple);
  result.module->setDataLayout(layout);
  result.module->setPICLevel(llvm::PICLevel::BigPIC);
  return result;
}

} // namespace

std::string text_section(const CodegenOptions& options) {
  bool elf = llvm::Triple(options.target.triple).isOSBinFormatELF();
  return elf ? ".text.firn." + options.section_suffix : "";
}

EmittedModule emit_module(const Program& program, const CodegenOptions& options,
                          const llvm::DataLayout& layout, llvm::LLVMContext& context, bool embed_weights,
                          const KernelNames* parts) {
  EmittedModule result = empty_module(options, layout, context);
  ModuleEmitter(result, options, parts).emit(program, embed_weights);
  return result;
}

EmittedModule emit_module(const KernelPart& part, const CodegenOptions& options,
                          const llvm::DataLayout& layout, llvm::LLVMContext& context) {
  EmittedModule result = empty_module(options, layout, context);
  ModuleContext emission = module_context(*result.module, options, part.variant);
  emission.text_section = kPartSection;
  llvm::Function* function = KernelEmitter(emission, *part.kernel, part.facts).emit().function;
  add_thunk(*function, part.symbol);
  result.thunk = part.symbol;
  return result;
}

} // namespace firn::codegen
