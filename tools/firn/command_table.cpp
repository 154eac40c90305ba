// Reads the parser of the command line into plain data.
#include "tools/firn/command_table.h"

#include <CLI/CLI.hpp>

namespace firn::tool {
namespace {

Verb read_verb(const CLI::App& app) {
  Verb verb{app.get_name(), app.get_description(), app.get_footer(), {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue; // hidden
    OptionRow row;
    row.description = option->get_description();
    row.is_positional = option->get_positional();
    row.is_required = option->get_required();
    if (row.is_positional) {
      row.names = {option->get_name(/*positional=*/true)};
    } else {
      for (const std::string& name : option->get_snames()) row.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) row.names.push_back("--" + name);
    }
    if (option->get_items_expected_max() != 0) row.value = option->get_type_name();
    verb.options.push_back(std::move(row));
  }
  return verb;
}

} // namespace

CommandTable read_command_table(const CLI::App& app) {
  CommandTable table{"firn", FIRN_VERSION, read_verb(app), {}};
  table.program.name.clear();
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!verb->get_group().empty()) table.verbs.push_back(read_verb(*verb));
  return table;
}

} // namespace firn::tool
