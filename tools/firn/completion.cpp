// Completion scripts for bash, zsh and fish: verbs, then the options of the verb; elsewhere names of files.
#include "tools/firn/command_table.h"

namespace firn::tool {
namespace {

// Text inside single quotes of a POSIX shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// All names of options that start with a dash, separated by spaces.
std::string option_names(const Verb& verb) {
  std::string result;
  for (const OptionRow& row : verb.options)
    for (const std::string& name : row.names)
      if (!row.is_positional) result += (result.empty() ? "" : " ") + name;
  return result;
}

std::string verb_names(const CommandTable& table) {
  std::string result;
  for (const Verb& verb : table.verbs) result += (result.empty() ? "" : " ") + verb.name;
  return result;
}

// zsh's _arguments gives brackets and colons a meaning.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_options(const Verb& verb) {
  std::string result;
  for (const OptionRow& row : verb.options) {
    const std::string value = row.value.empty() ? "" : ":" + zsh_text(row.value) + ":_files";
    if (row.is_positional) {
      result += " \\\n    " + quoted("*:" + zsh_text(row.names[0]) + ":_files");
      continue;
    }
    for (const std::string& name : row.names)
      result += " \\\n    " + quoted("*" + name + "[" + zsh_text(row.description) + "]" + value);
  }
  return result;
}

// Within single quotes, fish escapes quotes and backslashes.
std::string fish_text(const std::string& text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_options(const Verb& verb, const std::string& condition) {
  std::string result;
  for (const OptionRow& row : verb.options) {
    if (row.is_positional) continue;
    result += "complete -c firn -n " + fish_text(condition);
    for (const std::string& name : row.names)
      result += name.starts_with("--") ? " -l " + name.substr(2)
                : name.size() == 2     ? " -s " + name.substr(1)
                                       : " -o " + name.substr(1);
    result += (row.value.empty() ? "" : " -r") + std::string(" -d ") + fish_text(row.description) + "\n";
  }
  return result;
}

} // namespace

std::string bash_completion(const CommandTable& table) {
  std::string script = "# bash completion for firn\n"
                       "_firn() {\n"
                       "  local current=${COMP_WORDS[COMP_CWORD]} verb= words= i\n"
                       "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
                       "    [[ ${COMP_WORDS[i]} == -* ]] || { verb=${COMP_WORDS[i]}; break; }\n"
                       "  done\n"
                       "  case $verb in\n";
  script += "    '') words=" + quoted(verb_names(table) + " " + option_names(table.program)) + " ;;\n";
  for (const Verb& verb : table.verbs)
    script += "    " + verb.name +
              ") words=" + quoted(verb.name == "help" ? verb_names(table) : option_names(verb)) + " ;;\n";
  // Without a match of ours, bash offers names of files.
  script += "  esac\n"
            "  COMPREPLY=()\n"
            "  if [[ $current == -* || -z $verb || $verb == help ]]; then\n"
            "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
            "  fi\n"
            "}\n"
            "complete -o default -F _firn firn\n";
  return script;
}

std::string zsh_completion(const CommandTable& table) {
  std::string script = "#compdef firn\n"
                       "_firn() {\n"
                       "  local -a verbs=(\n";
  for (const Verb& verb : table.verbs)
    script += "    " + quoted(verb.name + ":" + zsh_text(verb.description)) + "\n";
  script += "  )\n"
            "  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
            "    _describe verb verbs\n"
            "    return\n"
            "  fi\n"
            "  local verb=$words[2]\n"
            "  if ((CURRENT > 2)); then\n"
            "    shift words\n"
            "    ((CURRENT--))\n"
            "  fi\n"
            "  case $verb in\n";
  for (const Verb& verb : table.verbs)
    script += "  " + verb.name + ")\n    " +
              (verb.name == "help" ? "_describe verb verbs" : "_arguments" + zsh_options(verb)) +
              "\n    ;;\n";
  script += "  *)\n    _arguments" + zsh_options(table.program) + "\n    ;;\n";
  script += "  esac\n"
            "}\n"
            "if [[ $funcstack[1] == _firn ]]; then\n"
            "  _firn \"$@\"\n"
            "else\n"
            "  compdef _firn firn\n"
            "fi\n";
  return script;
}

std::string fish_completion(const CommandTable& table) {
  std::string script = "# fish completion for firn\n";
  for (const Verb& verb : table.verbs)
    script += "complete -c firn -n __fish_use_subcommand -f -a " + verb.name + " -d " +
              fish_text(verb.description) + "\n";
  script += fish_options(table.program, "__fish_use_subcommand");
  for (const Verb& verb : table.verbs) {
    const std::string condition = "__fish_seen_subcommand_from " + verb.name;
    if (verb.name == "help")
      script +=
          "complete -c firn -n " + fish_text(condition) + " -f -a " + fish_text(verb_names(table)) + "\n";
    script += fish_options(verb, condition);
  }
  return script;
}

} // namespace firn::tool
