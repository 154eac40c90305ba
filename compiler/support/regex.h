// Regular expressions in RE2's syntax, as a program of steps over characters: what a match reads, and where
// it may go on. Nothing here walks it: regex_match.cpp does, straight from the program, and regex_table.cpp
// turns it into a table over bytes.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// A set of characters as ranges of code points, ascending and apart.
struct CharacterRange {
  uint32_t first, last;
  bool operator==(const CharacterRange&) const = default;
};
using CharacterSet = std::vector<CharacterRange>;

// A condition on a place between two characters, before the first one or behind the last one.
enum class Assertion : uint8_t { TextBegin, TextEnd, LineBegin, LineEnd, WordBoundary, NotWordBoundary };

struct RegexStep {
  enum class Kind : uint8_t {
    Read,   // a character of `characters`, then step `next`
    Either, // step `next` or `other`
    Assert, // step `next` where `assertion` holds
    Accept
  };
  Kind kind = Kind::Accept;
  int next = -1, other = -1;
  CharacterSet characters;
  Assertion assertion = Assertion::TextBegin;
};

struct Regex {
  std::vector<RegexStep> steps;
  int start = 0;
};

// Reads a pattern. Errors name the place and what is wrong there; Fault::Model, or Fault::Unsupported for
// syntax that Firn lacks.
Expected<Regex> parse_regex(std::string_view pattern);

// Whether the whole text matches. Text that is no UTF-8 matches nothing where it is not.
bool matches(const Regex& regex, std::string_view text);

// A regex as a table over bytes: in state s byte b leads to state next[s * classes + class_of[b]]. A match
// begins in state 1; state 0 leads nowhere else and accepts nothing. Behind the last byte accepts[s] says
// whether s matches.
struct RegexTable {
  std::vector<uint8_t> class_of; // 256
  std::vector<uint16_t> next;
  std::vector<uint8_t> accepts;
  int classes = 0;
};

// Makes the table; a Fault::Unsupported error if it takes too many states.
Expected<RegexTable> make_regex_table(const Regex& regex);

} // namespace firn
