// The verb `opt`.
#include "tools/firn/command.h"

#include "compiler/driver/opt.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace firn::tool {

void add_opt_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<driver::OptOptions>();
  CLI::App* verb = app.add_subcommand("opt", "Run passes on a graph in text form (.hlo)");
  verb->add_option("input", options->input, "graph to read; - for standard input")->required();
  verb->add_option("--passes", options->passes, "comma-separated pass names, or 'default'");
  verb->add_option("--weights", options->weights, "side file with the graph's large constants");
  verb->add_option("--weights-out", options->weights_out, "write the result's large constants here");
  verb->add_option("--target", options->triple, "target triple for target-dependent passes");
  verb->add_option("--mcpu", options->cpu, "target CPU for target-dependent passes");
  verb->add_option("--rewrite-limit", options->rewrite_limit, "stop after this many changes, to bisect");
  verb->add_flag("--verify-only", options->verify_only, "only parse, verify and print");
  verb->footer("Example:\n  firn opt --passes=fold-constants,eliminate-dead-code graph.hlo\n"
               "  firn compile model.onnx --emit=graph -o graph.hlo");
  verb->callback([options, &action] {
    action = [options] {
      auto text = driver::opt(*options);
      return text ? print_result(*text) : report(text.error(), options->input);
    };
  });
}

} // namespace firn::tool
