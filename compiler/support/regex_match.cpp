// Matches straight from the steps of a pattern: all places where the match may stand, character by character.
// The reference for tables.
#include "compiler/support/character_set.h"
#include "compiler/support/utf8.h"

namespace firn {

namespace {

bool is_word(std::optional<uint32_t> character) {
  return character && contains(*perl_class('w'), *character);
}

bool holds(Assertion assertion, std::optional<uint32_t> before, std::optional<uint32_t> behind) {
  switch (assertion) {
  case Assertion::TextBegin: return !before;
  case Assertion::TextEnd: return !behind;
  case Assertion::LineBegin: return !before || *before == '\n';
  case Assertion::LineEnd: return !behind || *behind == '\n';
  case Assertion::WordBoundary: return is_word(before) != is_word(behind);
  case Assertion::NotWordBoundary: return is_word(before) == is_word(behind);
  }
  return false;
}

// The steps from `places` on that read or accept, between the two characters.
std::vector<int> reached(const Regex& regex, std::vector<int> open, std::optional<uint32_t> before,
                         std::optional<uint32_t> behind) {
  std::vector<bool> seen(regex.steps.size());
  std::vector<int> result;
  while (!open.empty()) {
    auto at = static_cast<size_t>(open.back());
    open.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const RegexStep& step = regex.steps[at];
    if (step.kind == RegexStep::Kind::Read || step.kind == RegexStep::Kind::Accept)
      result.push_back(static_cast<int>(at));
    if (step.kind == RegexStep::Kind::Either) open.insert(open.end(), {step.next, step.other});
    if (step.kind == RegexStep::Kind::Assert && holds(step.assertion, before, behind))
      open.push_back(step.next);
  }
  return result;
}

} // namespace

bool matches(const Regex& regex, std::string_view text) {
  std::vector<int> places{regex.start};
  std::optional<uint32_t> before;
  for (size_t at = 0; at < text.size();) {
    auto character = decode_utf8(text, at);
    if (!character) return false;
    std::vector<int> next;
    for (int place : reached(regex, places, before, character)) {
      const RegexStep& step = regex.steps[static_cast<size_t>(place)];
      if (step.kind == RegexStep::Kind::Read && contains(step.characters, *character))
        next.push_back(step.next);
    }
    places = std::move(next);
    before = character;
  }
  for (int place : reached(regex, places, before, std::nullopt))
    if (regex.steps[static_cast<size_t>(place)].kind == RegexStep::Kind::Accept) return true;
  return false;
}

} // namespace firn
