// Links a model's object with the benchmark worker.
#include "compiler/driver/bench.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/worker_source.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

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

// The worker's source and the object, linked.
Result link_worker(const BenchOptions& options, const std::unique_ptr<Compilation>& c) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  std::string object = folder->file("model.o"), log = folder->file("log");
  if (auto facts = codegen::emit_object(c->program, c->codegen, object); !facts) return facts.error();
  auto source = folder->write("worker.cpp", kWorkerSource);
  if (!source) return source.error();
  if (auto written = folder->write("firn/abi.h", kAbiHeader); !written) return written.error();
  if (auto written = folder->write("facts.h", facts_header(*c)); !written) return written.error();
  const char* chosen = std::getenv("CXX");
  std::string compiler = chosen && *chosen ? chosen : "c++";
  int noted = Unfinished::note_file(options.output);
  int code = run_program(
      {compiler, "-std=c++17", "-O2", "-I", folder->path(), *source, object, "-o", options.output}, log);
  Unfinished::forget(noted);
  if (code == 0) return {};
  std::ifstream stream(log);
  return usage_error("building the worker with '" + compiler + "' failed:\n" +
                     std::string{std::istreambuf_iterator<char>(stream), {}});
}

} // namespace

bool build_worker(const BenchOptions& options, DiagnosticList& diagnostics) {
  CompileOptions compile = options.compile;
  compile.model = options.build_folder + "/model.onnx";
  if (Result bound = bind_shapes(compile, options.build_folder); !bound)
    return diagnostics.add(bound.error()), false;
  auto c = compile_in_memory(compile, diagnostics);
  if (!c) return false;
  Result linked = link_worker(options, c);
  if (!linked) diagnostics.add(linked.error());
  return static_cast<bool>(linked);
}

} // namespace firn::driver
