// Writes dependency files; see depfile.h. Spaces, '#' and ':' take a backslash, '$' is doubled, and '%' takes
// a backslash in targets, where Make would see a pattern. Make and Ninja differ on backslashes before ':',
// '#' and '$'; Make ends the prerequisites at ';' and '|'; Ninja knows no escape for other blanks.
#include "compiler/artifact/depfile.h"

#include <string_view>

namespace firn::artifact {
namespace {

// The trait of a path that no dependency file can express; empty if the path can stand in one.
std::string obstacle(std::string_view path) {
  for (size_t i = 0; i < path.size(); ++i) {
    const auto c = static_cast<unsigned char>(path[i]);
    if (c < 0x20 || c == 0x7f) return "a control character";
    if (c == ';' || c == '|') return std::string("the character '") + path[i] + "'";
    const char next = i + 1 < path.size() ? path[i + 1] : '\0';
    if (c == '\\' && std::string_view(":#$%\0", 5).find(next) != std::string_view::npos)
      return "a backslash at its end or before one of ':#$%'";
  }
  if (path.empty()) return "no character";
  if (path.back() == ':' || path.back() == ' ') return "a colon or a space at its end";
  return "";
}

std::string escaped(std::string_view path, bool is_target) {
  std::string result;
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c == '$') result += '$';
    if (c == '#' || c == ':' || (c == '%' && is_target)) result += '\\';
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

Expected<std::string> write_depfile(const std::vector<std::string>& targets,
                                    const std::vector<std::string>& inputs) {
  for (const auto* paths : {&targets, &inputs})
    for (const std::string& path : *paths)
      if (std::string why = obstacle(path); !why.empty())
        return usage_error("a dependency file cannot name '" + path + "', which has " + why);
  std::string text;
  for (const std::string& target : targets) text += (text.empty() ? "" : " ") + escaped(target, true);
  text += ":";
  for (const std::string& input : inputs) text += " \\\n  " + escaped(input, false);
  return text + "\n";
}

} // namespace firn::artifact
