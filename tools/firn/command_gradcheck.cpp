// The verb `gradcheck`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/gradcheck.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace firn::tool {

void add_gradcheck_command(CLI::App& app, Action& action) {
  struct Command {
    CompileFlags flags;
    driver::GradcheckOptions options;
  };
  auto command = std::make_shared<Command>();
  CLI::App* verb =
      app.add_subcommand("gradcheck", "Check the gradients of a model against finite differences");
  verb->add_option("model", command->flags.options.model,
                   "the ONNX model, or a graph in text form (.hlo); -: standard input")
      ->required();
  verb->add_option("--wrt", command->options.wrt,
                   "inputs and initializers to differentiate by; default: all that are floats");
  verb->add_option("--samples", command->options.samples,
                   "elements of each tensor that are moved alone, besides all of them together; default 3")
      ->check(whole_between(0, 1'000'000));
  verb->add_option("--seed", command->options.seed, "seed of the inputs, directions and cotangents");
  command->flags.add_model_to(*verb);
  command->flags.add_text_to(*verb);
  verb->footer("Everything is evaluated in f64; nothing is compiled. Dims without a number are drawn.\n"
               "Example:\n  firn gradcheck net.onnx --wrt fc.weight fc.bias");
  verb->callback([command, &action] {
    action = [command] {
      if (Result done = command->flags.finish(); !done) return report(done.error());
      command->options.compile = command->flags.options;
      command->options.print = print;
      DiagnosticList diagnostics;
      auto result = driver::gradcheck(command->options, diagnostics);
      if (!result) return report(diagnostics, command->flags.options.model);
      return result->wrong == 0 ? 0 : 1;
    };
  });
}

} // namespace firn::tool
