// Sets of characters.
#include "compiler/support/character_set.h"

#include <algorithm>
#include <map>

namespace firn {

CharacterSet united(CharacterSet ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  CharacterSet result;
  for (const CharacterRange& range : ranges)
    if (!result.empty() && range.first <= result.back().last + 1)
      result.back().last = std::max(result.back().last, range.last);
    else
      result.push_back(range);
  return result;
}

CharacterSet without(const CharacterSet& set, const CharacterSet& taken) {
  CharacterSet result;
  for (CharacterRange range : set) {
    bool is_left = true;
    for (const CharacterRange& gone : taken) {
      if (!is_left || gone.last < range.first || gone.first > range.last) continue;
      if (gone.first > range.first) result.push_back({range.first, gone.first - 1});
      is_left = gone.last < range.last;
      range.first = gone.last + 1;
    }
    if (is_left) result.push_back(range);
  }
  return result;
}

const CharacterSet* perl_class(char name) {
  static const CharacterSet digits{{'0', '9'}}, spaces{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
      words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return name == 'd' ? &digits : name == 's' ? &spaces : name == 'w' ? &words : nullptr;
}

const CharacterSet* posix_class(std::string_view name) {
  static const std::map<std::string_view, CharacterSet> classes = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7f}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  auto found = classes.find(name);
  return found == classes.end() ? nullptr : &found->second;
}

} // namespace firn
