// The manual page, in roff's man macros.
#include "tools/firn/command_table.h"

namespace firn::tool {
namespace {

// Escapes text for roff: backslashes, dashes that are typed, and lines that would be requests.
std::string escaped(const std::string& text) {
  std::string result;
  bool at_start = true;
  for (char c : text) {
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    at_start = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

// "-o, --output TEXT", names bold and the value in italics.
std::string heading(const OptionRow& row) {
  std::string result;
  for (const std::string& name : row.names) {
    if (!result.empty()) result += ", ";
    result += (row.is_positional ? "\\fI" : "\\fB") + escaped(name) + "\\fR";
  }
  if (!row.value.empty() && !row.is_positional) result += " \\fI" + escaped(row.value) + "\\fR";
  return result;
}

std::string options(const Verb& verb) {
  std::string result;
  for (const OptionRow& row : verb.options)
    result += ".TP\n" + heading(row) + "\n" + escaped(row.description) + "\n";
  return result;
}

// Lines that roff does not fill.
std::string verbatim(const std::string& text) {
  return text.empty() ? "" : ".PP\n.nf\n" + escaped(text) + (text.back() == '\n' ? "" : "\n") + ".fi\n";
}

std::string synopsis(const Verb& verb) {
  std::string result = ".B firn " + escaped(verb.name) + "\n.RI [ options ]";
  for (const OptionRow& row : verb.options)
    if (row.is_positional)
      result += row.is_required ? "\n.I " + escaped(row.names[0]) : "\n.RI [ " + escaped(row.names[0]) + " ]";
  return result + "\n";
}

} // namespace

std::string man_page(const CommandTable& table) {
  std::string page =
      ".TH FIRN 1 \"" FIRN_VERSION_DATE "\" \"firn " + escaped(table.version) + "\" \"User Commands\"\n";
  page += ".SH NAME\nfirn \\- compile neural networks ahead of time\n.SH SYNOPSIS\n";
  for (const Verb& verb : table.verbs) page += synopsis(verb) + (&verb == &table.verbs.back() ? "" : ".br\n");
  page += ".SH DESCRIPTION\n" + escaped(table.program.description) + "\n" + verbatim(table.program.footer);
  page += ".SH OPTIONS\n" + options(table.program);
  page += ".SH COMMANDS\n";
  for (const Verb& verb : table.verbs)
    page += ".SS firn " + escaped(verb.name) + "\n" + escaped(verb.description) + "\n" + options(verb) +
            verbatim(verb.footer);
  page += ".SH EXIT STATUS\n"
          ".TP\n0\nDone.\n"
          ".TP\n1\nThe model or another input is at fault.\n"
          ".TP\n2\nThe command line is.\n"
          ".TP\n3\nSomething that the model needs is not supported.\n"
          ".TP\n4\nFirn is: a bug.\n";
  return page;
}

} // namespace firn::tool
