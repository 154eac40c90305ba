// See words.h.
#include "compiler/support/words.h"

#include <algorithm>

namespace firn {

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    size_t end = std::min(list.find(separator), list.size());
    parts.emplace_back(list.substr(0, end));
    if (end == list.size()) return parts;
    list.remove_prefix(end + 1);
  }
}

bool is_c_identifier(std::string_view text) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

} // namespace firn
