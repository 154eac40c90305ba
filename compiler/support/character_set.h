// Sets of characters, as ranges of code points.
#pragma once

#include "compiler/support/regex.h"

namespace firn {

inline constexpr uint32_t kLastCharacter = 0x10ffff;

// The union of the ranges, ascending and apart.
CharacterSet united(CharacterSet ranges);
// The characters of one set that are not in another.
CharacterSet without(const CharacterSet& set, const CharacterSet& taken);
inline bool contains(const CharacterSet& set, uint32_t character) {
  for (const CharacterRange& range : set)
    if (character >= range.first && character <= range.last) return true;
  return false;
}

// The classes named 'd', 's' and 'w', and those with names such as "alpha"; null for other names.
const CharacterSet* perl_class(char name);
const CharacterSet* posix_class(std::string_view name);

} // namespace firn
