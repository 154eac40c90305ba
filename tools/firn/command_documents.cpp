// The hidden verb `documents`: prints the manual page or a completion script, for the build to install.
#include "tools/firn/command.h"
#include "tools/firn/command_table.h"

#include "compiler/support/diagnostic.h"

#include <CLI/CLI.hpp>
#include <memory>

namespace firn::tool {
namespace {

int run(const CLI::App& app, const std::string& kind) {
  struct Document {
    const char* kind;
    std::string (*print)(const CommandTable&);
  };
  for (auto [name, print] : {Document{"man", man_page}, Document{"bash", bash_completion},
                             Document{"zsh", zsh_completion}, Document{"fish", fish_completion}}) {
    if (kind != name) continue;
    return print_result(print(read_command_table(app)));
  }
  return report(usage_error("unknown document '" + kind + "': wanted man, bash, zsh or fish"));
}

} // namespace

void add_documents_command(CLI::App& app, Action& action) {
  auto kind = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("documents", "Print the manual page or a completion script");
  verb->group("");
  verb->add_option("kind", *kind, "man, bash, zsh or fish")->required();
  verb->callback([&app, kind, &action] { action = [&app, kind] { return run(app, *kind); }; });
}

} // namespace firn::tool
