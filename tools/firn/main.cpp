// firn: the command line. Parses arguments and hands over to the driver.
#include "tools/firn/command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string_view>

namespace firn::tool {

int report(const Diagnostic& diagnostic) {
  std::fprintf(stderr, "firn: %s\n", diagnostic.message.c_str());
  return static_cast<int>(diagnostic.fault);
}

namespace {

// clang's letters (-O3, -mcpu=x, -mattr=x) as the long options that the parser knows.
std::vector<std::string> normalise_arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) { // CLI11 wants them in reverse
    std::string_view argument = argv[i];
    if (argument.starts_with("-mcpu=") || argument.starts_with("-mattr=") || argument.starts_with("-target="))
      arguments.push_back("-" + std::string(argument));
    else if (argument.size() == 3 && argument.starts_with("-O"))
      arguments.push_back("--optimize=" + std::string(argument.substr(2)));
    else
      arguments.emplace_back(argument);
  }
  return arguments;
}

int run(int argc, char** argv) {
  CLI::App app{"Firn compiles neural networks (ONNX) into objects and C++ headers, ahead of time."};
  app.set_version_flag("--version", "firn " FIRN_VERSION);
  app.require_subcommand(1);
  Action action;
  add_compile_command(app, action);
  add_run_command(app, action);
  add_inspect_command(app, action);
  add_opt_command(app, action);
  add_bench_command(app, action);
  add_verify_command(app, action);
  add_ops_command(app, action);
  add_documents_command(app, action);
  try {
    app.parse(normalise_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(Fault::Usage);
  }
  return action();
}

} // namespace
} // namespace firn::tool

int main(int argc, char** argv) {
  return firn::tool::run(argc, argv);
}
