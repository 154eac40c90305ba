// The verbs of the command line: each adds its subcommand with options to the parser and a function to run.
#pragma once

#include "compiler/support/diagnostic.h"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace firn::tool {

// The last line of the help.
inline constexpr char kExitCodes[] =
    "Exit codes: 0 done, 1 the model is at fault, 2 usage, or something cannot be read or written,\n"
    "3 an operator is not supported, 4 a bug of firn.";

// What main() runs after parsing: returns the exit code.
using Action = std::function<int()>;

// Each registers one verb; when the verb is chosen, `action` is set.
void add_bench_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_documents_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_ops_command(CLI::App& app, Action& action);
void add_opt_command(CLI::App& app, Action& action);
void add_quantize_command(CLI::App& app, Action& action);
void add_reduce_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

// What 'firn help custom-op' prints.
std::string custom_op_help();

// How messages call the file at `path`, which may be standard input.
std::string shown_file(const std::string& path);
// Each prints to standard error and gives the exit code. `file` is what the messages are about; empty: the
// command line.
int report(const Diagnostic& diagnostic, const std::string& file = "");
int report(const DiagnosticList& diagnostics, const std::string& file);
// Prints to standard output; `code`, or what report() gives if the text could not be written.
int print_result(const std::string& text, int code = 0);

} // namespace firn::tool
