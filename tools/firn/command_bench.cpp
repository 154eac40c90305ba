// The verb `bench`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/bench.h"
#include "compiler/driver/start_time.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace firn::tool {
namespace {

// Words of the command line that CLI11 fills in.
struct BenchCommand {
  CompileFlags flags;
  driver::BenchOptions options;
  std::vector<std::string> at; // --at
  bool start = false;          // --start: times the start instead of runs
};

int run(BenchCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  driver::BenchOptions& options = command.options;
  options.compile = command.flags.options;
  if (options.compile.training && options.compile.entry.empty()) options.compile.entry = "step";
  for (const std::string& word : command.at)
    if (Result parsed = parse_dim_value("--at", word, options.at); !parsed) return report(parsed.error());
  if (!options.build_folder.empty()) {
    DiagnosticList diagnostics;
    return driver::build_worker(options, diagnostics) ? 0 : report(diagnostics, options.build_folder);
  }
  if (options.compile.model.empty())
    return report(usage_error("bench wants a model, or --build DIR -o PROGRAM"));
  if (options.simulate && options.compile.goals.threads <= 1)
    return report(usage_error("--simulate wants --threads, two at least"));
  DiagnosticList diagnostics;
  auto text = command.start
                  ? driver::start_time({.compile = options.compile, .json = options.json}, diagnostics)
                  : driver::bench(options, diagnostics);
  return text ? print_result(*text) : report(diagnostics, options.compile.model);
}

} // namespace

void add_bench_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<BenchCommand>();
  CLI::App* verb =
      app.add_subcommand("bench", "Time a model, kernel by kernel, against the machine's bounds");
  CLI::Option* model =
      verb->add_option("model", command->flags.options.model, "the ONNX model; -: standard input");
  CLI::Option* seconds =
      verb->add_option("--seconds", command->options.seconds, "time to measure; default 2");
  seconds->check(number_between(0, 1e5, /*above=*/true));
  CLI::Option* json = verb->add_flag("--json", command->options.json, "print JSON");
  CLI::Option* start = verb->add_flag(
      "--start", command->start,
      "say instead how long a program that compiles in process (libfirn.so) waits for the first output, "
      "and where the time goes: the median of five processes");
  CLI::Option* simulate = verb->add_flag(
      "--simulate", command->options.simulate,
      "run the tasks of --threads threads alone, one after the other, and say what so many cores "
      "would take");
  CLI::Option* at =
      verb->add_option("--at", command->at,
                       "where --dim gives a range: the value to measure at, NAME=VALUE; default: its "
                       "upper bound; repeatable")
          ->take_all();
  CLI::Option* build = verb->add_option("--build", command->options.build_folder,
                                        "write a program that checks and times the model in this folder");
  CLI::Option* output =
      verb->add_option("-o,--output", command->options.output, "the program that --build writes");
  build->needs(output)
      ->excludes(model)
      ->excludes(seconds)
      ->excludes(json)
      ->excludes(simulate)
      ->excludes(at)
      ->excludes(start);
  start->excludes(seconds)->excludes(simulate)->excludes(at);
  output->needs(build);
  command->flags.add_to(*verb);
  command->flags.add_text_to(*verb);
  command->flags.add_training_to(*verb);
  command->flags.add_variant_to(*verb);
  command->flags.add_generation_to(*verb, /*jobs=*/true);
  verb->footer("Code is made for the default CPU; -mcpu=native uses all that this machine has.\n"
               "Examples:\n  firn bench resnet50.onnx -mcpu=native\n"
               "  firn bench resnet50.onnx -mcpu=native --threads 8 --simulate\n"
               "  firn bench minilm.onnx --dim batch=1 --dim seq=1..512 --at seq=128\n"
               "  firn bench --build zoo/resnet50 -o worker -mcpu=native");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
