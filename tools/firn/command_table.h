// The verbs and options of the command line as plain data for documents about it, read from the parser so
// that they are written down once.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace firn::tool {

struct OptionRow {
  std::vector<std::string> names; // with their dashes, short ones first; a positional has its bare name
  std::string value;              // kind of its value, e.g. TEXT; empty for a flag
  std::string description;
  bool is_positional = false;
  bool is_required = false;
};

struct Verb {
  std::string name; // empty for the program itself
  std::string description, footer;
  std::vector<OptionRow> options;
};

struct CommandTable {
  std::string name, version;
  Verb program;
  std::vector<Verb> verbs; // without hidden ones
};

CommandTable read_command_table(const CLI::App& app);

// The manual page of section 1, in roff's man macros.
std::string man_page(const CommandTable& table);

// Scripts that complete verbs and options in a shell.
std::string bash_completion(const CommandTable& table);
std::string zsh_completion(const CommandTable& table);
std::string fish_completion(const CommandTable& table);

} // namespace firn::tool
