// The table of attributes: opcode.h says what they mean, this file that they are there.
#include "compiler/graph/verify_attributes.h"

#include <algorithm>

namespace firn {
namespace {

// In the order of Attribute's alternatives.
enum class Kind : uint8_t { Integer, Number, Flag, Word, Text, Integers, Numbers, DType, Window, Type };
constexpr std::string_view kKindNames[] = {
    "an integer",         "a number",          "a flag",  "a word",   "a string",
    "a list of integers", "a list of numbers", "a dtype", "a window", "a type"};

enum class Presence : uint8_t { Required, Optional };

struct Rule {
  Opcode opcode;
  std::string_view name;
  Kind kind;
  Presence presence;
  std::string_view words; // Kind::Word: those allowed, between bars; empty: any
};

constexpr auto kRequired = Presence::Required;
constexpr auto kOptional = Presence::Optional;
constexpr std::string_view kReductions = "|none|add|multiply|maximum|minimum|";

constexpr Rule kRules[] = {
    {Opcode::ArgReduce, "dim", Kind::Integer, kRequired, ""},
    {Opcode::ArgReduce, "kind", Kind::Word, kRequired, "|max|min|"},
    {Opcode::ArgReduce, "select_last", Kind::Flag, kOptional, ""},
    {Opcode::BroadcastInDim, "dims", Kind::Integers, kRequired, ""},
    {Opcode::Call, "callee", Kind::Text, kRequired, ""},
    {Opcode::Compare, "direction", Kind::Word, kRequired, "|eq|ne|lt|le|gt|ge|"},
    {Opcode::Composite, "name", Kind::Word, kRequired, ""},
    {Opcode::Concatenate, "dim", Kind::Integer, kRequired, ""},
    {Opcode::Convert, "saturate", Kind::Flag, kOptional, ""},
    {Opcode::Convert, "to", Kind::DType, kRequired, ""},
    {Opcode::Convolution, "groups", Kind::Integer, kOptional, ""},
    {Opcode::Convolution, "result", Kind::DType, kOptional, ""},
    {Opcode::Convolution, "window", Kind::Window, kRequired, ""},
    {Opcode::Cumulative, "dim", Kind::Integer, kRequired, ""},
    {Opcode::Cumulative, "exclusive", Kind::Flag, kOptional, ""},
    {Opcode::Cumulative, "reducer", Kind::Word, kRequired, "|add|multiply|"},
    {Opcode::Cumulative, "reverse", Kind::Flag, kOptional, ""},
    {Opcode::DimSize, "dim", Kind::Integer, kRequired, ""},
    {Opcode::Dot, "lhs_batch", Kind::Integers, kRequired, ""},
    {Opcode::Dot, "lhs_contract", Kind::Integers, kRequired, ""},
    {Opcode::Dot, "result", Kind::DType, kOptional, ""},
    {Opcode::Dot, "rhs_batch", Kind::Integers, kRequired, ""},
    {Opcode::Dot, "rhs_contract", Kind::Integers, kRequired, ""},
    {Opcode::DynamicSlice, "sizes", Kind::Integers, kRequired, ""},
    {Opcode::Fusion, "kind", Kind::Word, kOptional, ""},
    {Opcode::Fusion, "rows", Kind::Integer, kOptional, ""},
    {Opcode::Fusion, "schedule", Kind::Text, kOptional, ""},
    {Opcode::Gather, "axis", Kind::Integer, kRequired, ""},
    {Opcode::GatherElements, "axis", Kind::Integer, kRequired, ""},
    {Opcode::GatherND, "batch_dims", Kind::Integer, kOptional, ""},
    {Opcode::Iota, "dim", Kind::Integer, kRequired, ""},
    {Opcode::Pad, "high", Kind::Integers, kRequired, ""},
    {Opcode::Pad, "interior", Kind::Integers, kRequired, ""},
    {Opcode::Pad, "low", Kind::Integers, kRequired, ""},
    {Opcode::Reduce, "dims", Kind::Integers, kRequired, ""},
    {Opcode::ReduceWindow, "window", Kind::Window, kRequired, ""},
    {Opcode::Reverse, "dims", Kind::Integers, kRequired, ""},
    {Opcode::RngUniform, "seed", Kind::Integer, kOptional, ""},
    {Opcode::ScatterElements, "axis", Kind::Integer, kRequired, ""},
    {Opcode::ScatterElements, "reduction", Kind::Word, kOptional, kReductions},
    {Opcode::ScatterND, "reduction", Kind::Word, kOptional, kReductions},
    {Opcode::SelectAndScatter, "window", Kind::Window, kRequired, ""},
    {Opcode::Slice, "limits", Kind::Integers, kRequired, ""},
    {Opcode::Slice, "starts", Kind::Integers, kRequired, ""},
    {Opcode::Slice, "strides", Kind::Integers, kRequired, ""},
    {Opcode::Sort, "dim", Kind::Integer, kRequired, ""},
    {Opcode::Sort, "stable", Kind::Flag, kOptional, ""},
    {Opcode::TopK, "dim", Kind::Integer, kRequired, ""},
    {Opcode::TopK, "k", Kind::Integer, kRequired, ""},
    {Opcode::TopK, "largest", Kind::Flag, kOptional, ""},
    {Opcode::Transpose, "permutation", Kind::Integers, kRequired, ""},
};

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
  for (const Rule& rule : kRules) {
    if (rule.opcode != instruction.opcode()) continue;
    const Attribute* value = instruction.attributes().find(rule.name);
    std::string quoted = "attribute '" + std::string(rule.name) + "'";
    if (!value) {
      if (rule.presence == kRequired) return quoted + " is missing";
      continue;
    }
    if (value->index() != static_cast<size_t>(rule.kind))
      return quoted + " wants " + std::string(kKindNames[static_cast<size_t>(rule.kind)]);
    if (rule.words.empty()) continue;
    const std::string& word = std::get_if<Word>(value)->text;
    if (rule.words.find("|" + word + "|") == rule.words.npos)
      return quoted + " is the unknown word '" + word + "'";
  }
  return std::nullopt;
}

} // namespace firn
