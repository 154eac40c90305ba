// Parses the command line. Words that it cannot read are usage errors that say which words exist.
#include "tools/firn/command_line.h"

#include "compiler/driver/plans_help.h"
#include "compiler/support/nearest.h"
#include "compiler/support/unfinished.h"
#include "tools/firn/standard_output.h"
#include "tools/firn/value_checks.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <sstream>
#include <string_view>

namespace firn::tool {
namespace {

// The parser would take the next argument as the value of "--name=".
bool lacks_value(std::string_view argument) {
  return argument.starts_with("--") && argument.size() > 3 && argument.find('=') == argument.size() - 1;
}

// The verb of that name, or null.
const CLI::App* find_verb(const CLI::App& app, const std::string& name) {
  auto found = app.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty()) names.push_back(verb->get_name()); // none that is hidden
  return names;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  std::string nearest = nearest_words(word, known);
  return nearest.empty() ? "" : ", did you mean " + nearest + "?";
}

Diagnostic unknown_verb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> verbs = verb_names(app);
  std::string text =
      word.empty() ? "a verb is wanted" : "there is no verb '" + word + "'" + suggestion(word, verbs);
  text += "\nverbs:";
  for (const std::string& verb : verbs) text += " " + verb;
  return usage_error(text);
}

// Arguments that the verb has no use for.
Diagnostic unexpected_arguments(const CLI::App& verb) {
  std::string text;
  for (const std::string& argument : verb.remaining(true)) {
    std::string name = argument.substr(0, argument.find('='));
    bool is_option = name.size() > 1 && name[0] == '-';
    text += (text.empty() ? "" : "\n") + std::string(is_option ? "there is no option '" : "unexpected '") +
            name + "'" + (is_option ? suggestion(name, option_names(verb)) : "");
  }
  return usage_error(text);
}

std::string see_help(const CLI::App& part) {
  return "\nsee 'firn help" + (part.get_parent() ? " " + part.get_name() : "") + "'";
}

void add_help_command(CLI::App& app, Action& action) {
  auto name = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("help", "Say what a verb does and which options it takes");
  verb->get_help_ptr()->group(""); // works, though there is nothing to list
  verb->add_option("verb", *name,
                   "the verb, or custom-op: operators of the program, or plans: the words of plans; without "
                   "one, the list of all");
  verb->callback([&app, name, &action] {
    action = [&app, name] {
      if (*name == "custom-op") return print_result(custom_op_help());
      if (*name == "plans") return print_result(driver::plans_help());
      const CLI::App* topic = name->empty() ? &app : find_verb(app, *name);
      if (!topic) return report(unknown_verb(app, *name));
      // The help of the whole would be that of the verb `help`, which is being run.
      std::string text = name->empty()
                             ? app.get_formatter()->make_help(&app, "firn", CLI::AppFormatMode::Normal)
                             : topic->help("firn");
      return print_result(text);
    };
  });
}

void add_version_command(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("version", "Print the version");
  verb->callback([&action] { action = [] { return print_result("firn " FIRN_VERSION "\n"); }; });
}

} // namespace

std::string normalised_argument(std::string_view argument) {
  if (argument.starts_with("-mcpu=") || argument.starts_with("-mattr=") || argument.starts_with("-target="))
    return "-" + std::string(argument);
  if (argument.size() == 3 && argument.starts_with("-O"))
    return "--optimize=" + std::string(argument.substr(2));
  return std::string(argument);
}

Diagnostic refused_arguments(const CLI::App& app, const CLI::ParseError& error) {
  auto chosen = app.get_subcommands();
  const CLI::App& part = chosen.empty() ? app : *chosen.front();
  if (!part.remaining(true).empty()) {
    Diagnostic diagnostic = unexpected_arguments(part);
    diagnostic.message += see_help(part);
    return diagnostic;
  }
  std::string text = error.what();
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return usage_error(text + see_help(part));
}

std::unique_ptr<CLI::App> make_command_line(Action& action) {
  auto app = std::make_unique<CLI::App>(
      "Firn compiles neural networks (ONNX) into objects and C++ headers, ahead of time.", "firn");
  app->set_version_flag("--version", "firn " FIRN_VERSION);
  app->require_subcommand(1);
  add_compile_command(*app, action);
  add_run_command(*app, action);
  add_inspect_command(*app, action);
  add_opt_command(*app, action);
  add_quantize_command(*app, action);
  add_train_command(*app, action);
  add_bench_command(*app, action);
  add_verify_command(*app, action);
  add_ops_command(*app, action);
  add_gradcheck_command(*app, action);
  add_reduce_command(*app, action);
  add_documents_command(*app, action);
  add_help_command(*app, action);
  add_version_command(*app, action);
  app->footer(
      std::string("'firn help VERB' tells more of each, 'firn help custom-op' of operators of your own,\n"
                  "'firn help plans' of the words of plans and schedule databases.\n") +
      kExitCodes);
  for (CLI::App* verb : app->get_subcommands([](CLI::App*) { return true; }))
    for (CLI::Option* option : verb->get_options())
      if (option->get_items_expected_max() > 0) option->check(not_empty());
  return app;
}

namespace {

int parse_and_run(int argc, char** argv) {
  Action action;
  auto app = make_command_line(action);
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) { // the parser wants them in reverse
    if (lacks_value(argv[i])) return report(usage_error(std::string(argv[i]) + " lacks a value"));
    arguments.push_back(normalised_argument(argv[i]));
  }
  if (arguments.empty()) return report(unknown_verb(*app, ""));
  const std::string& first = arguments.back();
  if (first[0] != '-' && !find_verb(*app, first)) return report(unknown_verb(*app, first));
  try {
    app->parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) { // help or version
      std::ostringstream text;
      app->exit(error, text, text);
      return print_result(text.str());
    }
    return report(refused_arguments(*app, error));
  }
  try {
    return action();
  } catch (const InternalFailure& failure) {
    return report(internal_error(failure.message() + "\nPlease report this with what was compiled."));
  }
}

} // namespace

int run_command_line(int argc, char** argv) {
  open_standard_descriptors();
  Unfinished::remove_all_on_signals();
  int code = parse_and_run(argc, argv);
  Result arrived = flush_output();
  return code != 0 || arrived ? code : report(arrived.error());
}

} // namespace firn::tool
