// Links a model's object with the benchmark worker.
#include "compiler/driver/bench.h"
#include "compiler/driver/run_program.h"
#include "compiler/driver/system_loader.h"
#include "compiler/driver/text_source.h"
#include "compiler/driver/worker_facts.h"
#include "compiler/driver/worker_source.h"
#include "compiler/support/temporary_folder.h"
#include "compiler/support/unfinished.h"

#include <fstream>
#include <iterator>

namespace firn::driver {
namespace {

using Command = std::vector<std::string>;

Result failed(const std::string& compiler, const std::string& log) {
  std::ifstream stream(log);
  return usage_error("building the worker with '" + compiler + "' failed:\n" +
                     std::string{std::istreambuf_iterator<char>(stream), {}});
}

// Adds the worker's sources to what is compiled, with the runtime's part for strings if the object calls
// that.
Result add_sources(const TemporaryFolder& folder, bool has_text, Command& command) {
  auto add = [&](const auto& source, bool is_compiled) -> Result {
    auto written = folder.write(source.name, source.content);
    if (!written) return written.error();
    if (is_compiled && written->ends_with(".cpp")) command.push_back(*written);
    return {};
  };
  for (const WorkerSource& source : kWorkerSources)
    if (Result added = add(source, true); !added) return added;
  for (const TextSource& source : kTextSources)
    if (Result added = add(source, has_text); !added) return added;
  return {};
}

// Adds the files that define the program's operators. Those in C are compiled by themselves, as C.
Result add_program_files(const TemporaryFolder& folder, const std::vector<std::string>& files,
                         const std::string& log, Command& command) {
  for (const std::string& file : files) {
    command.push_back(file);
    if (!file.ends_with(".c")) continue;
    command.back() = folder.file("program_" + std::to_string(command.size()) + ".o");
    std::string compiler = compiler_named_by("CC", "cc");
    if (run_program({compiler, "-c", "-O2", "-I", folder.path(), file, "-o", command.back()}, log) != 0)
      return failed(compiler, log);
  }
  return {};
}

// Links the worker's source with the object.
Result link_worker(const BenchOptions& options, const std::unique_ptr<Compilation>& c,
                   const std::vector<StoredSet>& sets) {
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.error();
  std::string object = folder->file("model.o"), log = folder->file("log");
  auto emitted = codegen::emit_object(c->program, c->codegen, object);
  if (!emitted) return emitted.error();
  c->object = std::move(*emitted);
  if (Result complete = check_program_files(*c); !complete) return complete;
  if (auto written = folder->write("facts.h", worker_facts(*c, sets, options)); !written)
    return written.error();
  std::string compiler = compiler_named_by("CXX", "c++");
  Command command{compiler, "-std=c++17", "-O2", "-pthread", "-I", folder->path(), object};
  if (Result added = add_sources(*folder, calls_text(*c), command); !added) return added;
  if (Result added = add_program_files(*folder, c->link, log, command); !added) return added;
  command.insert(command.end(), {"-o", options.output});
  int noted = Unfinished::note_file(options.output);
  int code = run_program(command, log);
  Unfinished::forget(noted);
  return code == 0 ? Result() : failed(compiler, log);
}

} // namespace

bool build_worker(const BenchOptions& options, DiagnosticList& diagnostics) {
  CompileOptions compile = options.compile;
  compile.set_model_path(options.build_folder + "/model.onnx");
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
