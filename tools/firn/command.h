// The verbs of the command line: each adds its subcommand with options to the parser and a function to run.
#pragma once

#include "compiler/support/diagnostic.h"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace firn::tool {

// What main() runs after parsing: returns the exit code.
using Action = std::function<int()>;

// Each registers one verb; when the verb is chosen, `action` is set.
void add_bench_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_documents_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_ops_command(CLI::App& app, Action& action);
void add_opt_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

// Prints "error" to standard error and gives its exit code.
int report(const Diagnostic& diagnostic);

} // namespace firn::tool
