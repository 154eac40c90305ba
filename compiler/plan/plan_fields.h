// The fields of plans as data: each plan struct lists its own once (KernelPlan's structs, fields()), and from
// the list come how plans print, how they are read, when two are equal, and the grammar for people.
#pragma once

#include "compiler/plan/mac_instruction.h"
#include "compiler/support/text_scanner.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace firn::plan {

constexpr int kMaxTile = 64; // rows, vectors and the like, in a plan written by hand

// The numbers that a field takes.
struct ValueRange {
  int64_t min = 1, max = INT64_MAX;
  std::vector<int64_t> only = {}; // if set: none but these
  bool holds(int64_t value) const;
  std::string text() const; // "1, 2, 4 or 8", "1 to 64", "1 or more"
};
inline ValueRange at_least(int64_t min) {
  return {min};
}
inline ValueRange between(int64_t min, int64_t max) {
  return {min, max};
}
inline ValueRange one_of(std::vector<int64_t> values) {
  return {0, 0, std::move(values)};
}

// One field of a plan at hand: it prints and reads the member that it was made of.
struct Field {
  enum class Presence : uint8_t {
    Optional, // printed where it is not the default
    Always,   // printed in every plan, and may be left out of a text
    Required, // in every text
    Opens,    // an Optional one without which the fields behind it are not there
  };
  enum class Reading : uint8_t { Absent, Done, Failed };

  std::string word;    // identifies it, and stands in texts, unless its values are words themselves
  std::string grammar; // "split_k N"
  std::string values;  // "1 or more"; empty where the grammar says all
  std::string help;
  std::function<std::string()> text; // the value as it stands in texts; empty: no text says it
  std::function<Reading(TextScanner&)> read;
  std::function<bool()> applies = {}; // beside the fields before it; none: always
  Presence presence = Presence::Optional;
  // A text with a tile may leave the field out, and it follows from the tile. If the text has the one of
  // these fields that is always printed, it is that of a complete plan, and the field has its default.
  bool is_derived = false;

  Field with(Presence other) const;
  Field where(std::function<bool()> condition) const;
};
using Fields = std::vector<Field>;

// A value behind the word.
Field number(const std::string& word, int& value, ValueRange range, const std::string& help);
Field number(const std::string& word, int64_t& value, ValueRange range, const std::string& help);
// The word or nothing.
Field flag(const std::string& word, bool& value, const std::string& help);
// "tile 14x2"; without `word` the two sizes alone. `name`: what the grammar calls them.
Field sizes(const std::string& word, const std::string& name, int& first, int& second, int max,
            const std::string& help);
Field sizes(const std::string& word, const std::string& name, int64_t& first, int64_t& second, int max,
            const std::string& help);
Field mac_field(MacInstruction& mac);
// "rest_splits 2,4,4"
Field number_list(const std::string& word, std::vector<int>& values, ValueRange range,
                  const std::string& help);

// Fields that plans of several algorithms have.
Field lanes_field(int64_t& lanes);
Field accumulators_field(int64_t& accumulators, const std::string& help);
Field rolled_epilogue_field(bool& rolled);
Field bias_in_accumulators_field(bool& bias);
void append(Fields& fields, const Fields& others);

// One of several words, in the order of the numbers that `get` gives; an empty one, or less than 0, has no
// text. With `leads` the field's word stands before it.
struct WordChoice {
  std::vector<std::string> names;
  std::function<int()> get;
  std::function<void(int)> set;
  bool leads = false;
};
Field choice(const std::string& word, WordChoice choice, const std::string& help);
template <class Enum>
Field choice(const std::string& word, Enum& value, std::vector<std::string> names, bool leads,
             const std::string& help) {
  return choice(word,
                {std::move(names), [&value] { return static_cast<int>(value); },
                 [&value](int index) { value = static_cast<Enum>(index); }, leads},
                help);
}

// The fields that a text gave.
struct GivenFields {
  std::set<std::string> words;
  bool is_complete = false; // derived fields were left out for their defaults
  bool has(const Field& field) const { return words.count(field.word) != 0; }
  // Whether the value of a field is the text's to say.
  bool decides(const std::string& word) const { return is_complete || words.count(word) != 0; }
};

// The list of a plan, behind the name of its algorithm. `defaults` is the list of a plan without decisions.
std::string print_fields(const Fields& fields, const Fields& defaults);
// The fields of the list that a text gave.
std::string print_given(const Fields& fields, const GivenFields& given);
// False with an error recorded.
bool read_fields(const Fields& fields, TextScanner& in, GivenFields& given);
bool are_equal(const Fields& a, const Fields& b);
// "[mac KIND LHS RHS ACCUMULATOR] [tile ROWSxVECTORS [splits N]]"
std::string grammar_of(const Fields& fields);

// Records `message`, or, where a word of an earlier version is next, what it is called now. Always false.
bool fail_at_word(TextScanner& in, const std::string& message);

} // namespace firn::plan
