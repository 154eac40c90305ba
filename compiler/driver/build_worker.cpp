// Links a model's object with the benchmark worker.
#include "compiler/driver/bench.h"
#include "compiler/driver/object_runner.h"
#include "compiler/driver/worker_facts.h"
#include "compiler/driver/worker_source.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

#include <fstream>
#include <iterator>

namespace firn::driver {
namespace {

// The worker's source and the object, linked.
Result link_worker(const BenchOptions& options, const std::unique_ptr<Compilation>& c,
                   const std::vector<StoredSet>& sets) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  std::string object = folder->file("model.o"), log = folder->file("log");
  if (auto facts = codegen::emit_object(c->program, c->codegen, object); !facts) return facts.error();
  if (auto written = folder->write("facts.h", worker_facts(*c, sets, options)); !written)
    return written.error();
  const char* chosen = std::getenv("CXX");
  std::string compiler = chosen && *chosen ? chosen : "c++";
  std::vector<std::string> command{compiler, "-std=c++17", "-O2", "-pthread", "-I", folder->path(), object};
  for (const WorkerSource& source : kWorkerSources) {
    auto written = folder->write(source.name, source.content);
    if (!written) return written.error();
    if (written->ends_with(".cpp")) command.push_back(*written);
  }
  command.insert(command.end(), {"-o", options.output});
  int noted = Unfinished::note_file(options.output);
  int code = run_program(command, log);
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
  auto facts = onnx::inspect_onnx(compile.model);
  if (!facts) return diagnostics.add(facts.error()), false;
  auto sets = read_stored_sets(*facts, options.build_folder);
  if (!sets) return diagnostics.add(sets.error()), false;
  bind_inputs(sets->front().inputs, *facts, compile.import); // shapes that the model leaves open
  auto c =
      with_unknown_inputs_fixed(sets->front().inputs, compile.import, diagnostics,
                                [&](DiagnosticList& reasons) { return compile_in_memory(compile, reasons); });
  if (!c) return false;
  if (Result fits = fit_stored_sets(*c, compile.import, *sets); !fits)
    return diagnostics.add(fits.error()), false;
  for (const auto* tensors : {&c->description.inputs, &c->description.outputs})
    for (const artifact::TensorDescription& tensor : *tensors)
      if (tensor.dtype == DType::String)
        return diagnostics.add(unsupported_error("'" + tensor.name +
                                                 "' holds strings, which programs of --build do not take")),
               false;
  Result linked = link_worker(options, c, *sets);
  if (!linked) diagnostics.add(linked.error());
  return static_cast<bool>(linked);
}

} // namespace firn::driver
