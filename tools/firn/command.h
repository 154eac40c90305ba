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

// The function that main() runs after parsing; it returns the exit code.
using Action = std::function<int()>;

// Each registers one verb; when the verb is chosen, `action` is set.
void add_bench_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_documents_command(CLI::App& app, Action& action);
void add_gradcheck_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_ops_command(CLI::App& app, Action& action);
void add_opt_command(CLI::App& app, Action& action);
void add_quantize_command(CLI::App& app, Action& action);
void add_reduce_command(CLI::App& app, Action& action);
void add_run_command(CLI::App& app, Action& action);
void add_train_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);

// The text that 'firn help custom-op' prints.
std::string custom_op_help();

// The name of the file at `path`, which may be standard input, in messages.
std::string shown_file(const std::string& path);
// Each prints to standard error and returns the exit code. The messages are about `file`; empty: the command
// line.
int report(const Diagnostic& diagnostic, const std::string& file = "");
int report(const DiagnosticList& diagnostics, const std::string& file);
// Prints to standard output; returns `code`, or the code of report() if the text cannot be written.
int print_result(const std::string& text, int code = 0);

} // namespace firn::tool
