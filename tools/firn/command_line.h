// The whole command line: every verb with its options in one tree, which parsing, help and whatever documents
// the tool read alike.
#pragma once

#include "tools/firn/command.h"

#include <memory>

namespace firn::tool {

// The parser with all verbs. Walk it with get_subcommands({}) and, per verb, get_options({}), get_footer().
// Parsing sets `action`, which must outlive it, to what the verb does.
std::unique_ptr<CLI::App> make_command_line(Action& action);

// Parses and runs; the exit code. Also fails when standard output could not take all that was written.
int run_command_line(int argc, char** argv);

} // namespace firn::tool
