// The verb `quantize`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/quantize.h"

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
  double budget = 0;
  bool quiet = false;
};

int run(QuantizeCommand& command) {
  if (Result done = command.flags.finish(); !done) return report(done.error());
  command.options.compile = command.flags.options;
  quantize::Options& quantize = command.options.quantize;
  quantize.activations = command.activations == "s8"    ? quantize::ActivationType::S8
                         : command.activations == "u16" ? quantize::ActivationType::U16
                                                        : quantize::ActivationType::U8;
  if (command.budget > 0) quantize.budget = command.budget;
  bool shown = !command.quiet && ::isatty(2);
  command.options.progress = [shown](const std::string& phase) {
    if (shown) std::fprintf(stderr, "%s ...\n", phase.c_str());
  };
  DiagnosticList diagnostics;
  auto text = driver::quantize_model(command.options, diagnostics);
  if (!text) return report(diagnostics, command.options.compile.model);
  return command.quiet ? 0 : print_result(*text);
}

} // namespace

void add_quantize_command(CLI::App& app, Action& action) {
  auto command = std::make_shared<QuantizeCommand>();
  driver::QuantizeOptions& options = command->options;
  CLI::App* verb =
      app.add_subcommand("quantize", "Make a model compute in 8-bit integers, by calibration data");
  verb->add_option("model", command->flags.options.model, "the ONNX model")->required();
  verb->add_option("--data", options.data,
                   "folder with calibration data: .npy, .npz or .pb files, or folders with input_0.pb ...")
      ->required();
  verb->add_option("-o,--output", options.output, "the quantised model; default: MODEL.int8.onnx");
  verb->add_option("--report", options.report, "the report as HTML; default: beside the output");
  verb->add_option("--budget", command->budget,
                   "largest relative error of the outputs on the data: layers stay in floats until it holds")
      ->check(number_between(0, 1e9));
  verb->add_option("--activations", command->activations, "u8 (default), s8 or u16")
      ->check(one_of({"u8", "s8", "u16"}));
  verb->add_option("--keep", options.quantize.keep, "a node that stays in floats; repeatable")->take_all();
  verb->add_flag("-q,--quiet", command->quiet, "print nothing");
  command->flags.add_to(*verb);
  verb->footer("The output is a standard ONNX model with QuantizeLinear and DequantizeLinear.\n"
               "Example:\n  firn quantize net.onnx --data images --budget 0.05 -o net.int8.onnx");
  verb->callback([command, &action] { action = [command] { return run(*command); }; });
}

} // namespace firn::tool
