// The verb `reduce`.
#include "tools/firn/command.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/reduce.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

namespace firn::tool {

void add_reduce_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<driver::ReduceOptions>();
  CLI::App* verb = app.add_subcommand("reduce", "Make a model that fails small, for a bug report");
  verb->add_option("model", options->model, "the ONNX model; -: standard input")->required();
  verb->add_option(
          "--check", options->check,
          "command that fails on the model, whose path stands for {}; what is left out must not change "
          "its exit code")
      ->required();
  verb->add_option("--message", options->message, "text that the command prints where it fails as it should");
  verb->add_option("-o,--output", options->output, "the reduced model; default MODEL.reduced.onnx");
  verb->add_option("--timeout", options->timeout_seconds,
                   "seconds per check, one that takes longer is ended and fails by that; default 300")
      ->check(whole_between(1, 1'000'000));
  options->announce = print;
  auto quiet = std::make_shared<bool>(false);
  verb->add_flag("-q,--quiet", *quiet, "no progress");
  verb->footer(
      "Values that lie between nodes kept and nodes left out become inputs and outputs, constants become\n"
      "inputs where the failure does not need them. Nodes in bodies of loops and branches stay.\n"
      "Examples:\n  firn reduce model.onnx --check 'firn compile {} -o /tmp/out' --message 'internal'\n"
      "  firn reduce model.onnx --check 'python compare.py {}'");
  verb->callback([options, quiet, &action] {
    if (!*quiet)
      options->progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    action = [options] {
      Result done = driver::reduce(*options);
      return done ? 0 : report(done.error(), options->model);
    };
  });
}

} // namespace firn::tool
