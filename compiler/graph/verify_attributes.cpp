// Checks of attributes against the rows of ops.def.
#include "compiler/graph/verify_attributes.h"

#include <algorithm>

namespace firn {
namespace {

// Kinds in the order of Attribute's alternatives; ops.def names them.
enum class AttributeKind : uint8_t {
  Integer,
  Number,
  Flag,
  Word,
  Text,
  Integers,
  Numbers,
  DType,
  Window,
  Type
};
constexpr std::string_view kKindNames[] = {
    "an integer",         "a number",          "a flag",  "a word",   "a string",
    "a list of integers", "a list of numbers", "a dtype", "a window", "a type"};

enum class Presence : uint8_t { Required, Optional };

struct Rule {
  Opcode opcode;
  std::string_view name;
  AttributeKind kind;
  Presence presence;
  std::string_view words; // AttributeKind::Word: those allowed, with bars between them; empty: any
};

constexpr Rule kRules[] = {
#define FIRN_ATTRIBUTE(enumerator, name, kind, presence, words)                                              \
  {Opcode::enumerator, name, AttributeKind::kind, Presence::presence, words},
#include "compiler/graph/ops.def"
};

// Whether a word is one of those between the bars.
bool is_listed(std::string_view word, std::string_view words) {
  for (size_t at = 0; at <= words.size();) {
    size_t end = std::min(words.find('|', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

bool is_word(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

// Words that mean something else where a value stands.
bool is_reserved(std::string_view text) {
  constexpr std::string_view reserved[] = {"true", "false", "inf", "nan", "type"};
  return parse_dtype(text) || std::find(std::begin(reserved), std::end(reserved), text) != std::end(reserved);
}

// Whether the parser reads this attribute back as it is.
bool has_text_form(std::string_view name, const Attribute& value) {
  if (!is_word(name)) return false;
  if (std::holds_alternative<Window>(value) != (name == "window")) return false;
  const Word* word = std::get_if<Word>(&value);
  return !word || (is_word(word->text) && !is_reserved(word->text));
}

} // namespace

std::optional<std::string> check_attributes(const Instruction& instruction) {
  for (const auto& [name, value] : instruction.attributes())
    if (!has_text_form(name, value)) return "attribute '" + name + "' has no text form";
  // Any instruction may have a plan; what it says is read where kernels are planned.
  const Attribute* plan = instruction.attributes().find("plan");
  if (plan && !std::holds_alternative<std::string>(*plan)) return "attribute 'plan' wants a string";
  for (const Rule& rule : kRules) {
    if (rule.opcode != instruction.opcode()) continue;
    const Attribute* value = instruction.attributes().find(rule.name);
    std::string quoted = "attribute '" + std::string(rule.name) + "'";
    if (!value) {
      if (rule.presence == Presence::Required) return quoted + " is missing";
      continue;
    }
    if (value->index() != static_cast<size_t>(rule.kind))
      return quoted + " wants " + std::string(kKindNames[static_cast<size_t>(rule.kind)]);
    if (rule.words.empty()) continue;
    const std::string& word = std::get_if<Word>(value)->text;
    if (!is_listed(word, rule.words)) return quoted + " is the unknown word '" + word + "'";
  }
  return std::nullopt;
}

} // namespace firn
