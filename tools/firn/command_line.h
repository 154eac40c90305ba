// The whole command line: every verb with its options in one tree, which parsing, help and whatever documents
// the tool read alike.
#pragma once

#include "tools/firn/command.h"

#include <memory>
#include <string>
#include <string_view>

namespace CLI {
class ParseError;
}

namespace firn::tool {

// The parser with all verbs. Walk it with get_subcommands({}) and, per verb, get_options({}), get_footer().
// Parsing sets `action`, which must outlive it, to what the verb does.
std::unique_ptr<CLI::App> make_command_line(Action& action);

// An argument as the parser takes it: clang's letters (-O3, -mcpu=x, -mattr=x) as long options.
std::string normalised_argument(std::string_view argument);
// The parser's error in the form of all other errors.
Diagnostic refused_arguments(const CLI::App& app, const CLI::ParseError& error);

// Parses and runs; the exit code. Also fails when standard output could not take all that was written.
int run_command_line(int argc, char** argv);

} // namespace firn::tool
