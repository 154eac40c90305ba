// The verbs `inspect` and `ops`.
#include "tools/firn/command.h"
#include "tools/firn/compile_flags.h"

#include "compiler/driver/inspect.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace firn::tool {

void add_inspect_command(CLI::App& app, Action& action) {
  struct Command {
    CompileFlags flags;
    bool json = false;
  };
  auto command = std::make_shared<Command>();
  CLI::App* verb = app.add_subcommand("inspect", "Show what a model is and whether it compiles");
  verb->add_option("model", command->flags.options.model, "the ONNX model; -: standard input")->required();
  command->flags.add_to(*verb);
  verb->add_flag("--json", command->json, "print JSON");
  verb->footer("Example:\n  firn inspect net.onnx --dim batch=1");
  verb->callback([command, &action] {
    action = [command] {
      if (Result done = command->flags.finish(); !done) return report(done.error());
      DiagnosticList diagnostics;
      std::string text = driver::inspect(command->flags.options, command->json, diagnostics);
      int code = print_result(text);
      return diagnostics.empty() ? code : report(diagnostics, command->flags.options.model);
    };
  });
}

void add_ops_command(CLI::App& app, Action& action) {
  struct Command {
    std::string filter;
    bool json = false;
  };
  auto command = std::make_shared<Command>();
  CLI::App* verb = app.add_subcommand("ops", "List the ONNX operators that compile");
  verb->add_option("filter", command->filter, "only names that contain this");
  verb->add_flag("--json", command->json, "print JSON");
  verb->footer("Example:\n  firn ops Conv");
  verb->callback([command, &action] {
    action = [command] {
      std::string list = driver::list_operators(command->filter, command->json);
      if (list.empty()) return report(usage_error("no operator's name contains '" + command->filter + "'"));
      return print_result(list);
    };
  });
}

} // namespace firn::tool
