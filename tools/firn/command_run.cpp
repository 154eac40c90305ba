// The verbs `run` and `verify`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/run.h"
#include "compiler/driver/runs_here.h"
#include "compiler/driver/verify.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace firn::tool {
namespace {

driver::Engine engine_of(const std::string& word) {
  if (word == "loops") return driver::Engine::Loops;
  if (word == "ptx") return driver::Engine::Ptx;
  return word == "eval" ? driver::Engine::Evaluator : driver::Engine::Object;
}

constexpr const char* kEngines = "object: the compiled code; eval: the reference interpreter";

CLI::Option* add_engine(CLI::App& verb, std::string& engine) {
  return verb.add_option("--engine", engine, kEngines)->check(one_of({"object", "eval"}));
}

// Engines that try the program of --gpu here.
CLI::Option* add_engine_or_gpu(CLI::App& verb, std::string& engine) {
  return verb
      .add_option(
          "--engine", engine,
          kEngines +
              std::string(
                  "; with --gpu, loops (the default there): its kernels as loops of this CPU, or ptx: in an "
                  "interpreter, which finds races and accesses out of bounds"))
      ->check(one_of({"object", "eval", "loops", "ptx"}));
}

struct RunCommand {
  CompileFlags flags;
  driver::RunOptions options;
  std::string engine = "object";
  std::vector<std::string> inputs;
};

int run(RunCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  command.options.engine = engine_of(command.engine);
  for (const std::string& word : command.inputs) {
    size_t at = word.rfind('=');
    if (at == word.npos || at == 0 || at + 1 == word.size())
      return report(usage_error("--input wants NAME=FILE, found '" + word + "'"));
    command.options.inputs.push_back({word.substr(0, at), word.substr(at + 1)});
  }
  command.options.compile = command.flags.options;
  command.options.print = print;
  command.options.note = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  DiagnosticList diagnostics;
  bool done = driver::run(command.options, diagnostics);
  return done ? 0 : report(diagnostics, command.options.compile.model);
}

struct VerifyCommand {
  CompileFlags flags;
  driver::VerifyOptions options;
  std::string engine, against; // engine empty: the object's code, or with --gpu loops
};

int run(VerifyCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  command.options.against_own = !command.against.empty();
  if (command.engine.empty()) command.engine = command.flags.gpu.empty() ? "object" : "loops";
  command.options.engine = engine_of(command.engine);
  const bool tries_gpu = command.engine == "loops" || command.engine == "ptx";
  if (tries_gpu == command.flags.gpu.empty())
    return report(usage_error("--engine=" + command.engine +
                              (tries_gpu ? " tries the program that --gpu names: --gpu=cuda"
                                         : " does not go with --gpu: loops and ptx do")));
  command.flags.options.gpu_as_loops = command.engine == "loops";
  // Cases that run at once share the cores.
  if (command.options.jobs > 1) command.flags.options.jobs = 1;
  command.options.compile = command.flags.options;
  command.options.print = print;
  auto code = driver::verify(command.options);
  return code ? *code : report(code.error());
}

} // namespace

void add_run_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<RunCommand>();
  CLI::App* verb = app.add_subcommand("run", "Run a model once on tensors from files");
  verb->add_option("model", command->flags.options.model,
                   "the ONNX model, or a graph (.hlo) or kernels (.kir) in text form; -: standard input")
      ->required();
  verb->add_option("--input", command->inputs, "NAME=FILE, a .npy or .pb file; repeatable")->take_all();
  verb->add_option("--output-dir", command->options.output_dir,
                   "write outputs here as NAME.npy; default: print them");
  add_engine(*verb, command->engine);
  command->flags.add_to(*verb);
  command->flags.add_text_to(*verb);
  command->flags.add_variant_to(*verb);
  command->flags.add_generation_to(*verb, /*jobs=*/true);
  verb->footer("Code is made for the default CPU; -mcpu=native uses all that this machine has.\n"
               "Example:\n  firn run digits.onnx --input image=three.npy --output-dir out");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

void add_verify_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<VerifyCommand>();
  driver::VerifyOptions& options = command->options;
  CLI::App* verb = app.add_subcommand("verify", "Check models against stored inputs and outputs");
  verb->add_option("folders", options.folders,
                   "folders of cases (model.onnx or model.hlo, and test_data_set_*), searched recursively")
      ->required();
  CLI::Option* engine = add_engine_or_gpu(*verb, command->engine);
  CLI::Option* against =
      verb->add_option(
              "--against", command->against,
              "f32: print how far each output is from that of the model at its own precision, computed by "
              "--math=strict without --precision and --weight-type; folders may be files of models, and "
              "those without test_data_set_* take seeded inputs")
          ->check(one_of({"f32"}))
          ->excludes(engine);
  verb->add_option("--tolerance", options.tolerance,
                   "largest relative error; default 1e-5, f16 1e-2, bf16 5e-2; with --against none")
      ->check(number_between(0, 1e30));
  verb->add_flag("--absolute-floor", options.absolute_floor,
                 "measure errors relative to max(1, largest expected)")
      ->excludes(against);
  verb->add_option("--jobs,-j", options.jobs, "cases at once; default 1")->check(whole_between(1, 1024));
  verb->add_option("--timeout", options.timeout_seconds, "seconds per case; default 300")
      ->check(whole_between(1, 1'000'000));
  CLI::Option* list = verb->add_option("--list", options.list,
                                       "file of cases whose refusal is expected, one 'name reason' per line");
  verb->add_flag("--update-list", options.update_list, "write the refusals to --list")->needs(list);
  verb->add_flag("--json", options.json, "print one JSON document: the cases and the totals");
  verb->add_flag("-q,--quiet", options.quiet, "print only what is not a pass");
  verb->add_flag("--verbose", options.verbose, "name inputs whose values were fixed, as they decide shapes");
  command->flags.add_to(*verb);
  command->flags.add_gpu_to(*verb);
  command->flags.add_text_to(*verb);
  command->flags.add_variant_to(*verb);
  command->flags.add_generation_to(*verb, /*jobs=*/false);
  verb->footer("Code is made for the default CPU; -mcpu=native uses all that this machine has.\n"
               "A stored input is for the input that its tensor is called as, else for the next one of the "
               "graph;\nstates and inputs that have an initializer may be left out.\n"
               "Inputs that decide shapes are fixed to their values, with one compilation for each.\n"
               "Examples:\n  firn verify onnx/node --list refused.txt --jobs 2\n"
               "  firn verify --against f32 --weight-type=i8 gpt2.onnx");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
