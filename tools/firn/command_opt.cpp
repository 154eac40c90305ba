// The verb `opt`.
#include "tools/firn/command.h"
#include "tools/firn/value_checks.h"

#include "compiler/driver/opt.h"

#include <CLI/CLI.hpp>
#include <climits>
#include <memory>
#include <string>

namespace firn::tool {
namespace {

// Of a text, messages begin with the place: "graph.hlo:3:5: expected ...".
int report_place(const Diagnostic& diagnostic, const std::string& input) {
  size_t end = diagnostic.message.find(": ");
  if (end == std::string::npos || !diagnostic.message.starts_with(input)) return report(diagnostic, input);
  return report({diagnostic.fault, diagnostic.message.substr(end + 2)}, diagnostic.message.substr(0, end));
}

} // namespace

void add_opt_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<driver::OptOptions>();
  CLI::App* verb = app.add_subcommand("opt", "Run passes on a graph in text form (.hlo)");
  verb->add_option("input", options->input, "graph to read; - for standard input")->required();
  CLI::Option* passes =
      verb->add_option("--passes", options->passes, "comma-separated pass names, or 'default'");
  verb->add_option("--weights", options->weights, "side file with the graph's large constants");
  CLI::Option* weights_out =
      verb->add_option("--weights-out", options->weights_out, "write the result's large constants here");
  verb->add_option("--target", options->triple, "target triple for target-dependent passes");
  verb->add_option("--mcpu", options->cpu, "target CPU for target-dependent passes");
  CLI::Option* limit =
      verb->add_option("--rewrite-limit", options->rewrite_limit, "stop after this many changes, to bisect");
  limit->check(whole_between(0, INT_MAX));
  verb->add_flag("--verify-only", options->verify_only, "only parse, verify and print")
      ->excludes(passes)
      ->excludes(weights_out)
      ->excludes(limit);
  verb->footer("Example:\n  firn opt --passes=fold-constants,eliminate-dead-code graph.hlo\n"
               "  firn compile model.onnx --emit=graph -o graph.hlo");
  verb->callback([options, &action] {
    action = [options] {
      auto text = driver::opt(*options);
      return text ? print_result(*text) : report_place(text.error(), options->input);
    };
  });
}

} // namespace firn::tool
