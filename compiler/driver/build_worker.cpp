// Links a model's object with the benchmark worker.
#include "compiler/driver/bench.h"
#include "compiler/driver/compile_text.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/worker_source.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace firn::driver {
namespace {

std::string io_table(const char* name, const std::vector<artifact::TensorDescription>& tensors) {
  std::string text = std::string("constexpr IoFacts ") + name + "[] = {";
  for (const auto& tensor : tensors)
    text += "{" + std::to_string(tensor.arena_offset ? *tensor.arena_offset : -1) + ", " +
            std::to_string(tensor.byte_size()) + "}, ";
  return text + "{-1, 0}};\n";
}

// What the worker needs to know of weights that have to be prepared.
std::string prepare_facts(const Compilation& c) {
  if (!c.prepare) return "";
  return "constexpr std::size_t kWeightBytes = " + std::to_string(c.description.weight_bytes) +
         ";\nextern \"C\" std::int32_t " + c.codegen.prepare_symbol +
         "(const firn_rt1_call*);\n#define FIRN_PREPARE_SYMBOL " + c.codegen.prepare_symbol + "\n";
}

std::string facts_header(const Compilation& c) {
  const auto& d = c.description;
  std::string run = c.codegen.run_symbol, weights = c.codegen.weights_symbol;
  return "#pragma once\n#include <cstddef>\n#include <cstdint>\nstruct firn_rt1_call;\n"
         "struct IoFacts { long long offset, bytes; };\n"
         "constexpr std::size_t kArenaBytes = " +
         std::to_string(d.arena_bytes) +
         ";\n"
         "constexpr int kNumInputs = " +
         std::to_string(d.inputs.size()) + ", kNumOutputs = " + std::to_string(d.outputs.size()) + ";\n" +
         io_table("kInputs", d.inputs) + io_table("kOutputs", d.outputs) + "extern \"C\" std::int32_t " +
         run +
         "(const firn_rt1_call*);\n"
         "extern \"C\" const unsigned char* " +
         weights +
         "(void);\n"
         "#define FIRN_RUN_SYMBOL " +
         run + "\n#define FIRN_WEIGHTS_SYMBOL " + weights + "\n" + prepare_facts(c);
}

// Shapes that the model leaves open come from the stored inputs.
Result bind_shapes(CompileOptions& compile, const std::string& folder) {
  auto facts = onnx::inspect_onnx(compile.model);
  if (!facts) return facts.error();
  for (size_t i = 0; i < facts->inputs.size(); ++i) {
    std::string path = folder + "/test_data_set_0/input_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) break;
    auto tensor = onnx::read_tensor_file(path);
    if (!tensor) return tensor.error();
    compile.import.shapes[facts->inputs[i].name] = tensor->literal->dims();
  }
  return {};
}

} // namespace

Result build_worker(const BenchOptions& options) {
  CompileOptions compile = options.compile;
  compile.model = options.build_folder + "/model.onnx";
  if (Result bound = bind_shapes(compile, options.build_folder); !bound) return bound;
  DiagnosticList diagnostics;
  auto c = compile_in_memory(compile, diagnostics);
  if (!c) return Diagnostic{static_cast<Fault>(exit_code(diagnostics)), diagnostics_text(diagnostics)};
  TemporaryFolder folder;
  if (folder.path().empty()) return usage_error("cannot make a temporary folder");
  auto facts = codegen::emit_object(c->program, c->codegen, folder.path() + "/model.o");
  if (!facts) return facts.error();
  std::filesystem::create_directories(folder.path() + "/firn");
  std::ofstream(folder.path() + "/worker.cpp") << kWorkerSource;
  std::ofstream(folder.path() + "/firn/abi.h") << kAbiHeader;
  std::ofstream(folder.path() + "/facts.h") << facts_header(*c);
  const char* chosen = std::getenv("CXX");
  std::string log = folder.path() + "/log";
  int code = run_program({chosen && *chosen ? chosen : "c++", "-std=c++17", "-O2", "-I", folder.path(),
                          folder.path() + "/worker.cpp", folder.path() + "/model.o", "-o", options.output},
                         log);
  if (code == 0) return {};
  std::ifstream stream(log);
  return usage_error("building the worker with 'c++' failed:\n" +
                     std::string{std::istreambuf_iterator<char>(stream), {}});
}

} // namespace firn::driver
