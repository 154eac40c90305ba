// Links a model's object with the benchmark worker.
#include "compiler/driver/bench.h"
#include "compiler/driver/given_inputs.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/worker_source.h"
#include "compiler/frontend/onnx/stored_tensors.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

#include <fstream>
#include <iterator>

namespace firn::driver {
namespace {

using Files = std::map<std::string, size_t>; // numbers of the stored tensors, by name of input or output

std::string io_table(const char* name, const std::vector<artifact::TensorDescription>& tensors,
                     const Files& files) {
  std::string text = std::string("constexpr IoFacts ") + name + "[] = {";
  for (const auto& tensor : tensors) {
    auto file = files.find(tensor.name);
    text += "{" + std::to_string(tensor.arena_offset ? *tensor.arena_offset : -1) + ", " +
            std::to_string(tensor.byte_size()) + ", " +
            (file == files.end() ? "-1" : std::to_string(file->second)) + "}, ";
  }
  return text + "{-1, 0, -1}};\n";
}

// What the worker needs to know of weights that have to be prepared.
std::string prepare_facts(const Compilation& c) {
  if (!c.prepare) return "";
  return "constexpr std::size_t kWeightBytes = " + std::to_string(c.description.weight_bytes) +
         ";\nextern \"C\" std::int32_t " + c.codegen.prepare_symbol +
         "(const firn_rt2_call*);\n#define FIRN_PREPARE_SYMBOL " + c.codegen.prepare_symbol + "\n";
}

std::string facts_header(const Compilation& c, const Files& inputs) {
  const auto& d = c.description;
  Files outputs;
  for (const std::string& name : c.module->main().result_names) outputs.emplace(name, outputs.size());
  std::string run = c.codegen.run_symbol, weights = c.codegen.weights_symbol;
  return "#pragma once\n#include <cstddef>\n#include <cstdint>\nstruct firn_rt2_call;\n"
         "struct IoFacts { long long offset, bytes; int file; };\n"
         "constexpr std::size_t kArenaBytes = " +
         std::to_string(d.arena_bytes) +
         ";\n"
         "constexpr std::size_t kVariant = " +
         std::to_string(c.run_variant) +
         ";\n"
         "constexpr int kNumInputs = " +
         std::to_string(d.inputs.size()) + ", kNumOutputs = " + std::to_string(d.outputs.size()) + ";\n" +
         io_table("kInputs", d.inputs, inputs) + io_table("kOutputs", d.outputs, outputs) +
         "extern \"C\" std::int32_t " + run +
         "(const firn_rt2_call*);\n"
         "extern \"C\" const unsigned char* " +
         weights +
         "(void);\n"
         "#define FIRN_RUN_SYMBOL " +
         run + "\n#define FIRN_WEIGHTS_SYMBOL " + weights + "\n" + prepare_facts(c);
}

// Shapes that the model leaves open come from the stored inputs. Returns which input each of these is for.
Expected<Files> bind_stored_inputs(CompileOptions& compile, GivenInputs& given, const std::string& folder) {
  auto facts = onnx::inspect_onnx(compile.model);
  if (!facts) return facts.error();
  auto tensors = onnx::read_stored_tensors(folder + "/test_data_set_0", "input");
  if (!tensors) return tensors.error();
  auto numbers = onnx::match_stored_inputs(*facts, *tensors);
  if (!numbers) return numbers.error();
  Files files;
  for (size_t i = 0; i < tensors->size(); ++i) {
    const std::string& name = facts->inputs[(*numbers)[i]].name;
    given[name] = (*tensors)[i].literal;
    files[name] = i;
  }
  bind_inputs(given, *facts, compile.import);
  return files;
}

// The worker's source and the object, linked.
Result link_worker(const BenchOptions& options, const std::unique_ptr<Compilation>& c, const Files& inputs) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  std::string object = folder->file("model.o"), log = folder->file("log");
  if (auto facts = codegen::emit_object(c->program, c->codegen, object); !facts) return facts.error();
  auto source = folder->write("worker.cpp", kWorkerSource);
  if (!source) return source.error();
  auto pool = folder->write("thread_pool.cpp", kThreadPoolSource);
  if (!pool) return pool.error();
  if (auto written = folder->write("firn/abi.h", kAbiHeader); !written) return written.error();
  if (auto written = folder->write("facts.h", facts_header(*c, inputs)); !written) return written.error();
  const char* chosen = std::getenv("CXX");
  std::string compiler = chosen && *chosen ? chosen : "c++";
  int noted = Unfinished::note_file(options.output);
  int code = run_program({compiler, "-std=c++17", "-O2", "-pthread", "-I", folder->path(), *source, *pool,
                          object, "-o", options.output},
                         log);
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
  GivenInputs given;
  auto inputs = bind_stored_inputs(compile, given, options.build_folder);
  if (!inputs) return diagnostics.add(inputs.error()), false;
  auto c = with_unknown_inputs_fixed(given, compile.import, diagnostics, [&](DiagnosticList& reasons) {
    return compile_in_memory(compile, reasons);
  });
  if (!c) return false;
  Result linked = link_worker(options, c, *inputs);
  if (!linked) diagnostics.add(linked.error());
  return static_cast<bool>(linked);
}

} // namespace firn::driver
