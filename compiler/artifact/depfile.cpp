// Writes dependency files; see depfile.h.
#include "compiler/artifact/depfile.h"

#include <string_view>

namespace firn::artifact {
namespace {

std::string escaped(std::string_view path) {
  std::string result;
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c == '$') result += '$';
    if (c == '#') result += '\\';
    if (c == ' ') {
      // Backslashes before a space would escape each other, so each is doubled.
      for (size_t at = i; at > 0 && path[at - 1] == '\\'; --at) result += '\\';
      result += '\\';
    }
    result += c;
  }
  return result;
}

} // namespace

std::string write_depfile(const std::vector<std::string>& targets, const std::vector<std::string>& inputs) {
  std::string text;
  for (const std::string& target : targets) text += (text.empty() ? "" : " ") + escaped(target);
  text += ":";
  for (const std::string& input : inputs) text += " \\\n  " + escaped(input);
  return text + "\n";
}

} // namespace firn::artifact
