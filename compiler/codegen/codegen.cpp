// The flow of code generation: emit, legalise, optimise, legalise what the optimiser made, run the backend,
// check.
#include "compiler/codegen/codegen.h"

#include "compiler/codegen/elf_file.h"
#include "compiler/codegen/legalise.h"
#include "compiler/codegen/machine.h"
#include "compiler/codegen/module_emitter.h"
#include "compiler/codegen/object_file.h"
#include "compiler/codegen/run_guarded.h"
#include "compiler/kernel/weights_hash.h"
#include "compiler/support/output_set.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <set>

namespace firn::codegen {

namespace {

// Everything that one generation owns.
struct Generation {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine; // for the least able CPU; functions name their own
  std::vector<TargetFeatures> features;         // features of the target, then those of other CPUs
  EmittedModule emitted;
  std::map<std::string, std::string> merged; // merge_equal_code()
  llvm::SmallVector<char, 0> output;
  BackendReport report;
};

// f64 (and on the smallest CPUs f32) arithmetic would be calls of the compiler's library.
Result check_types(const kernel::Program& program, const TargetInfo& target) {
  for (const auto& kernel : program.kernels) {
    for (kernel::MachineType type : kernel->register_types) {
      bool lacking = (type.scalar == kernel::Scalar::F64 && !target.has_double) ||
                     (kernel::is_float(type.scalar) && !target.has_float);
      if (!lacking) continue;
      std::string where = kernel->location.empty() ? kernel->name : kernel->location;
      bool off = target.features.find("-fpregs") != std::string::npos;
      return unsupported_error(
          "'" + where + "' computes in " + std::string(scalar_name(type.scalar)) + ", for which " +
          target.display_name() + " (" + target.triple + ") has no instructions; " +
          (off ? "its FPU is switched off by -mattr=-fpregs, in CMake by a toolchain without "
                 "-mfloat-abi=hard or softfp"
               : "name a CPU that has them with -mcpu (in CMake, CPU)"));
    }
  }
  return {};
}

Result check_program(const kernel::Program& program, const TargetInfo& target) {
  if (Result result = kernel::verify(program); !result) return result;
  return check_types(program, target);
}

Result check_programs(const kernel::Program& program, const CodegenOptions& options) {
  if (Result result = check_program(program, options.target); !result) return result;
  for (const VariantCode& variant : options.variants)
    if (Result result = check_program(*variant.program, variant.target); !result) return result;
  for (const SpecializedCode& specializations : options.specializations)
    if (Result result = check_program(*specializations.program, options.target_of(specializations.variant));
        !result)
      return result;
  return options.prepare ? check_program(*options.prepare, options.baseline_target()) : Result();
}

// Machines for the target and for other CPUs, of which the last is kept.
Result create_machines(Generation& generation, const CodegenOptions& options) {
  for (size_t i = 0; i <= options.variants.size(); ++i) {
    const TargetInfo& target = options.target_of(i);
    auto machine = create_machine(target, options.opt_level);
    if (!machine) return machine.error();
    generation.machine = std::move(*machine);
    generation.features.push_back(target_features(target, *generation.machine));
  }
  return {};
}

Result emit(Generation& generation, const kernel::Program& program, const CodegenOptions& options,
            bool embed_weights) {
  if (Result result = check_programs(program, options); !result) return result;
  if (Result result = create_machines(generation, options); !result) return result;
  generation.emitted = emit_module(program, options, generation.features,
                                   generation.machine->createDataLayout(), generation.context, embed_weights);
  llvm::Module& module = *generation.emitted.module;
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(module, &stream)) return internal_error("emitted LLVM IR is broken: " + message);
  return {};
}

Result compile(Generation& generation, const CodegenOptions& options, bool assembly) {
  llvm::Module& module = *generation.emitted.module;
  // Functions of several CPUs take what the least able one lacks, and all workarounds.
  legalise(module, options.target, generation.features.back());
  optimise(module, *generation.machine, options.opt_level);
  legalise(module, options.target, generation.features.back());
  generation.merged = merge_equal_code(module, *generation.machine, generation.emitted.equal_kernels);
  generation.report = run_backend(module, *generation.machine, assembly, generation.output);
  if (!generation.report.error.empty()) return internal_error("code generation: " + generation.report.error);
  return {};
}

// The deeper entry function's frame and the deepest below it: a kernel, and what that calls; in between the
// deepest of a task, the executor's own apart. Return addresses are pushed on x86 and, at worst, saved
// elsewhere within the frames already counted.
int64_t deepest_stack(const BackendReport& report, const CodegenOptions& options,
                      const EmittedModule& emitted) {
  int64_t choice = 0, entry = 0, task = 0, kernel = 0, other = 0;
  int64_t word = options.target.arch == Arch::X86_64 ? options.target.pointer_bits / 8 : 0;
  for (const auto& [name, bytes] : report.stack_bytes) {
    const auto &kernels = emitted.kernel_symbols, &tasks = emitted.task_symbols;
    const auto& entries = emitted.entry_symbols;
    if (options.has_choice() && name == options.run_symbol) {
      choice = bytes + word;
      continue;
    }
    int64_t& deepest = std::find(entries.begin(), entries.end(), name) != entries.end()   ? entry
                       : std::find(kernels.begin(), kernels.end(), name) != kernels.end() ? kernel
                       : std::find(tasks.begin(), tasks.end(), name) != tasks.end()       ? task
                                                                                          : other;
    deepest = std::max(deepest, bytes);
  }
  if (other > 0) other += word;
  if (task > 0) task += word;
  return choice + entry + task + kernel + other + 2 * word;
}

enum class Stage : uint8_t { Module, Assembly, Object };

// Everything up to `stage`. What a failure of LLVM leaves behind cannot be destroyed any more and stays.
Expected<std::unique_ptr<Generation>> generate(const kernel::Program& program, const CodegenOptions& options,
                                               Stage stage, bool embed_weights) {
  auto generation = std::make_unique<Generation>();
  Result result;
  std::string failure = run_guarded([&] {
    result = emit(*generation, program, options, embed_weights);
    if (result && stage != Stage::Module) result = compile(*generation, options, stage == Stage::Assembly);
  });
  if (!failure.empty()) {
    (void)generation.release();
    return internal_error("LLVM cannot generate code for " + options.target.display_name() + " (" +
                          options.target.triple + "): " + failure);
  }
  if (!result) return result.error();
  return generation;
}

// Sizes of kernels by the kernels' own names, in the program's order.
void name_kernels(ObjectFacts& facts, const kernel::Program& program, const Generation& generation) {
  std::vector<std::pair<std::string, int64_t>> by_name;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const std::string& own = generation.emitted.kernel_symbols[i];
    auto merged = generation.merged.find(own);
    for (const auto& [symbol, bytes] : facts.kernel_text_bytes) {
      if (symbol == (merged == generation.merged.end() ? own : merged->second))
        by_name.emplace_back(program.kernels[i]->name, bytes);
    }
  }
  facts.kernel_text_bytes = std::move(by_name);
}

// Adds, for each program for certain extents, the bytes of kernels that no other program shares.
void add_specialization_sizes(ObjectFacts& facts, const CodegenOptions& options,
                              const Generation& generation) {
  for (const SpecializedCode& specializations : options.specializations) {
    int64_t bytes = 0;
    for (const auto& kernel : specializations.program->kernels)
      for (const auto& [symbol, size] : facts.kernel_text_bytes)
        if (symbol == kernel_symbol(*kernel) && !generation.merged.count(symbol)) bytes += size;
    facts.specialization_text_bytes.push_back(bytes);
  }
}

// Functions of the program that kernels call.
std::set<std::string> custom_symbols(const kernel::Program& program) {
  std::set<std::string> symbols;
  for (const auto& kernel : program.kernels)
    for (const auto& op : kernel->body.ops)
      if (op->callee.starts_with(kernel::kCustomCallee))
        symbols.insert(op->callee.substr(kernel::kCustomCallee.size()));
  return symbols;
}

// Weights in an object of COFF or Mach-O lie beside the code, which reaches 2 GiB at most; ELF has a section
// of their own for them, which may lie further.
Result check_reach(int64_t weight_bytes) {
  constexpr int64_t kMax =
      (int64_t{1} << 31) - (int64_t{64} << 20); // code and the program's own data come too
  if (weight_bytes <= kMax) return {};
  return unsupported_error("the weights take " + std::to_string(weight_bytes) +
                           " bytes: an object of COFF or Mach-O holds no more than " + std::to_string(kMax) +
                           "; --weight-type holds them in fewer bits");
}

} // namespace

Expected<std::string> emit_llvm_text(const kernel::Program& program, const CodegenOptions& options) {
  auto generation = generate(program, options, Stage::Module, /*embed_weights=*/false);
  if (!generation) return generation.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*generation)->emitted.module->print(stream, nullptr);
  return text;
}

Expected<std::string> emit_assembly(const kernel::Program& program, const CodegenOptions& options) {
  auto generation = generate(program, options, Stage::Assembly, /*embed_weights=*/false);
  if (!generation) return generation.error();
  return std::string((*generation)->output.data(), (*generation)->output.size());
}

Expected<ObjectFacts> emit_object(const kernel::Program& program, const CodegenOptions& options,
                                  ByteSink& sink) {
  bool elf = llvm::Triple(options.target.triple).isOSBinFormatELF();
  if (!elf)
    if (Result reaches = check_reach(options.embedded(program).weight_bytes); !reaches)
      return reaches.error();
  auto generated = generate(program, options, Stage::Object, /*embed_weights=*/!elf);
  if (!generated) return generated.error();
  Generation& generation = **generated;
  std::span<const char> object(generation.output.data(), generation.output.size());
  const kernel::Program& embedded = options.embedded(program);
  bool has_weights = !elf && !embedded.constants.empty();
  auto facts = inspect_object(object, generation.emitted.kernel_symbols,
                              has_weights ? embedded.weight_bytes : 0, custom_symbols(program));
  if (!facts) return facts.error();
  facts->stack_bytes = deepest_stack(generation.report, options, generation.emitted);
  add_specialization_sizes(*facts, options, generation);
  name_kernels(*facts, program, generation);
  // The module is large; it must not be in memory beside the weights.
  generation.emitted.module.reset();
  const std::string weights = weights_section(options);
  if (!elf) {
    if (Result written = sink.write({object.data(), object.size()}); !written) return written.error();
    facts->object_bytes = static_cast<int64_t>(object.size());
    facts->weights_hash = kernel::hash_weights(embedded);
    return facts;
  }
  auto written = write_elf(object, sink, weights, embedded);
  if (!written) return written.error();
  facts->object_bytes = written->bytes;
  facts->weights_hash = written->weights_hash;
  return facts;
}

Expected<ObjectFacts> emit_object(const kernel::Program& program, const CodegenOptions& options,
                                  const std::string& path) {
  OutputSet outputs;
  StagedFile file(outputs, path);
  auto facts = emit_object(program, options, file);
  if (!facts) return facts;
  if (Result written = outputs.commit(); !written) return written.error();
  return facts;
}

} // namespace firn::codegen
