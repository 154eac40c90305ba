// The verb `quantize`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/quantize.h"
#include "compiler/support/diagnostic_text.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace firn::tool {
namespace {

struct QuantizeCommand {
  CompileFlags flags;
  driver::QuantizeOptions options;
  std::string activations = "u8";
  std::optional<double> budget;
  bool quiet = false;
};

// Types of fewer bits would narrow the model that the quantised one is compared with.
Result check_precision(const driver::CompileOptions& options, const CompileFlags& flags) {
  std::string flag = options.goals.precision != firn::Precision::F32 ? "--precision=" + flags.precision
                     : options.goals.weight_type != firn::WeightType::AsGiven
                         ? "--weight-type=" + flags.weight_type
                         : "";
  if (flag.empty()) return {};
  return usage_error(flag +
                     " does not go with 'firn quantize', whose errors are those against the model at its own "
                     "precision; give it to 'firn compile', with the quantised model");
}

int run(QuantizeCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  if (Result own = check_precision(command.flags.options, command.flags); !own) return report(own.error());
  command.options.compile = command.flags.options;
  quantize::Options& quantize = command.options.quantize;
  quantize.activations = command.activations == "s8"    ? quantize::ActivationType::S8
                         : command.activations == "u16" ? quantize::ActivationType::U16
                                                        : quantize::ActivationType::U8;
  quantize.budget = command.budget;
  bool shown = !command.quiet && ::isatty(2);
  command.options.progress = [shown](const std::string& phase) {
    if (shown) std::fprintf(stderr, "%s ...\n", phase.c_str());
  };
  if (!command.quiet) command.options.announce = [](const std::string& text) { return print(text); };
  DiagnosticList diagnostics;
  const std::string& model = command.options.compile.model;
  auto quantised = driver::quantize_model(command.options, diagnostics);
  if (!quantised) return report(diagnostics, model);
  for (const std::string& warning : quantised->warnings)
    std::fputs(warning_text(shown_file(model), warning).c_str(), stderr);
  return 0;
}

} // namespace

void add_quantize_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<QuantizeCommand>();
  driver::QuantizeOptions& options = command->options;
  CLI::App* verb =
      app.add_subcommand("quantize", "Make a model compute in 8-bit integers, by calibration data");
  verb->add_option("model", command->flags.options.model, "the ONNX model; -: standard input")->required();
  verb->add_option("--data", options.data,
                   "folder with calibration data: .npy, .npz or .pb files, or folders with input_0.pb ...")
      ->required();
  verb->add_option("-o,--output", options.output, "the quantised model; default: MODEL.int8.onnx");
  verb->add_option("--report", options.report, "the report as HTML; default: beside the output");
  verb->add_option("--budget", command->budget,
                   "largest relative error of the outputs on the data: layers stay in floats until it holds")
      ->check(number_between(0, 1e9, /*above=*/true));
  verb->add_option("--activations", command->activations, "u8 (default), s8 or u16")
      ->check(one_of({"u8", "s8", "u16"}));
  verb->add_flag("--size", options.quantize.size,
                 "quantise for bytes: layers too that are not faster in 8 bits on the CPU of -mcpu");
  verb->add_option("--keep", options.quantize.keep, "a node that stays in floats; repeatable")->take_all();
  verb->add_option("--depfile", options.depfile,
                   "write a rule for make and ninja: which files the quantised model is made from");
  verb->add_flag("-q,--quiet", command->quiet, "print nothing but warnings");
  command->flags.add_to(*verb);
  command->flags.add_variant_to(*verb);
  for (const char* refused : {"--precision", "--weight-type", "--initializers-are-inputs"})
    verb->get_option(refused)->group(""); // has no row in the help: run() says why
  verb->footer("The output is a standard ONNX model with QuantizeLinear and DequantizeLinear.\n"
               "Example:\n  firn quantize net.onnx --data images --budget 0.05 -o net.int8.onnx");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
