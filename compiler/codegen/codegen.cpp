// The flow of code generation: check the programs, generate, check the object, write it.
#include "compiler/codegen/codegen.h"

#include "compiler/codegen/elf_file.h"
#include "compiler/codegen/generate_object.h"
#include "compiler/codegen/generation.h"
#include "compiler/codegen/object_file.h"
#include "compiler/codegen/parts.h"
#include "compiler/kernel/weights_hash.h"
#include "compiler/support/output_set.h"

#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <set>

namespace firn::codegen {

namespace {

// f64 (and on the smallest CPUs f32) arithmetic would be calls of the compiler's library.
Result check_types(const kernel::Program& program, const Machine& target) {
  for (const auto& kernel : program.kernels) {
    for (kernel::MachineType type : kernel->register_types) {
      bool lacking = (type.scalar == kernel::Scalar::F64 && !target.cpu.has_double) ||
                     (kernel::is_float(type.scalar) && !target.cpu.has_float);
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

Result check_program(const kernel::Program& program, const Machine& target) {
  if (Result result = kernel::verify(program); !result) return result;
  if (Result result = kernel::verify_entry(program); !result) return result;
  return check_types(program, target);
}

Result check_programs(const kernel::Program& program, const CodegenOptions& options) {
  Result result;
  for_each_program(program, options, [&](const kernel::Program& each, size_t variant) {
    if (result) result = check_program(each, options.target_of(variant));
  });
  return result;
}

// Everything up to `stage` of the whole program as one module.
Expected<std::unique_ptr<Generation>> generate_module(const kernel::Program& program,
                                                      const CodegenOptions& options, Stage stage,
                                                      bool embed_weights) {
  return generate(options, stage, "", [&](Generation& generation) {
    return emit_module(program, options, generation.machine->createDataLayout(), generation.context,
                       embed_weights, /*parts=*/nullptr);
  });
}

// Sizes of kernels by the kernels' own names, in the program's order.
void name_kernels(ObjectFacts& facts, const kernel::Program& program, const GeneratedObject& object) {
  std::vector<std::pair<std::string, int64_t>> by_name;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    const std::string& own = object.kernel_symbols[i];
    auto merged = object.merged.find(own);
    for (const auto& [symbol, bytes] : facts.kernel_text_bytes) {
      if (symbol == (merged == object.merged.end() ? own : merged->second))
        by_name.emplace_back(program.kernels[i]->name, bytes);
    }
  }
  facts.kernel_text_bytes = std::move(by_name);
}

// Adds, for each program for certain extents, the bytes of kernels that no other program shares.
void add_specialization_sizes(ObjectFacts& facts, const CodegenOptions& options,
                              const GeneratedObject& object) {
  for (const SpecializedCode& specializations : options.specializations) {
    int64_t bytes = 0;
    for (const auto& kernel : specializations.program->kernels)
      for (const auto& [symbol, size] : facts.kernel_text_bytes)
        if (symbol == kernel_symbol(*kernel) && !object.merged.count(symbol)) bytes += size;
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

// The sizes of the object and of its kernels, and what it needs.
Expected<ObjectFacts> facts_of(const GeneratedObject& object, const kernel::Program& program,
                               const CodegenOptions& options, int64_t embedded_weights) {
  auto facts = inspect_object(object.bytes, object.kernel_symbols, embedded_weights, custom_symbols(program));
  if (!facts) return facts;
  facts->stack_bytes = deepest_stack(object.stack, options);
  facts->parts = object.parts;
  facts->cached_parts = object.cached_parts;
  add_specialization_sizes(*facts, options, object);
  name_kernels(*facts, program, object);
  return facts;
}

// Objects of COFF and Mach-O hold the weights as LLVM wrote them.
Expected<ObjectFacts> emit_whole_object(const kernel::Program& program, const CodegenOptions& options,
                                        ByteSink& sink) {
  const kernel::Program& embedded = options.embedded(program);
  if (Result reaches = check_reach(embedded.weight_bytes); !reaches) return reaches.error();
  auto object = generate_whole(program, options);
  if (!object) return object.error();
  auto facts = facts_of(*object, program, options, embedded.constants.empty() ? 0 : embedded.weight_bytes);
  if (!facts) return facts;
  if (Result written = sink.write(object->bytes); !written) return written.error();
  facts->object_bytes = static_cast<int64_t>(object->bytes.size());
  facts->weights_hash = kernel::hash_weights(embedded);
  return facts;
}

} // namespace

Expected<std::string> emit_llvm_text(const kernel::Program& program, const CodegenOptions& options) {
  if (Result result = check_programs(program, options); !result) return result.error();
  auto generation = generate_module(program, options, Stage::Module, /*embed_weights=*/false);
  if (!generation) return generation.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*generation)->emitted.module->print(stream, nullptr);
  return text;
}

Expected<std::string> emit_assembly(const kernel::Program& program, const CodegenOptions& options) {
  if (Result result = check_programs(program, options); !result) return result.error();
  auto generation = generate_module(program, options, Stage::Assembly, /*embed_weights=*/false);
  if (!generation) return generation.error();
  return std::string((*generation)->output.data(), (*generation)->output.size());
}

Expected<GeneratedObject> generate_whole(const kernel::Program& program, const CodegenOptions& options) {
  auto generated = generate_module(program, options, Stage::Object, /*embed_weights=*/true);
  if (!generated) return generated.error();
  const Generation& generation = **generated;
  return GeneratedObject{{generation.output.data(), generation.output.size()},
                         generation.emitted.kernel_symbols,
                         generation.merged,
                         stack_depths(generation.report, options, generation.emitted),
                         0,
                         0};
}

Expected<ObjectFacts> emit_object(const kernel::Program& program, const CodegenOptions& options,
                                  ByteSink& sink) {
  if (Result result = check_programs(program, options); !result) return result.error();
  if (!llvm::Triple(options.target.triple).isOSBinFormatELF())
    return emit_whole_object(program, options, sink);
  auto object = generate_in_parts(program, options);
  if (!object) return object.error();
  auto facts = facts_of(*object, program, options, /*embedded_weights=*/0);
  if (!facts) return facts;
  auto written = write_elf(object->bytes, sink, weights_section(options), options.embedded(program));
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
