// Ops on text.
#include "compiler/graph/evaluate_call.h"
#include "compiler/support/letter_case.h"
#include "compiler/support/regex.h"

#include <iterator>
#include <map>

namespace firn::evaluation {

namespace {

using Strings = std::vector<std::string>;

Expected<Values> concatenate(const OpCall& call) {
  const Strings &lhs = call.tensor(0).string_values(), &rhs = call.tensor(1).string_values();
  if (call.tensor(0).dims() != call.tensor(1).dims()) return call.fail("operands must have one shape");
  double bytes = 0;
  for (const Strings* operand : {&lhs, &rhs})
    for (const std::string& each : *operand) bytes += static_cast<double>(each.size());
  if (Result spent = call.spend(bytes); !spent) return spent.error();
  Strings joined;
  for (size_t i = 0; i < lhs.size(); ++i) joined.push_back(lhs[i] + rhs[i]);
  return one(Literal::strings(call.tensor(0).dims(), std::move(joined)));
}

Expected<Values> find(const OpCall& call) {
  std::map<std::string_view, int64_t> positions;
  const Strings& keys = call.tensor(1).string_values();
  for (size_t i = 0; i < keys.size(); ++i) positions.emplace(keys[i], static_cast<int64_t>(i));
  std::vector<int64_t> found;
  for (const std::string& each : call.tensor(0).string_values()) {
    auto position = positions.find(each);
    found.push_back(position == positions.end() ? -1 : position->second);
  }
  return one(Literal::of(DType::I64, call.tensor(0).dims(), found));
}

Expected<Values> change_case(const OpCall& call) {
  bool upper = call.attributes().word("to") == "upper";
  Strings changed;
  for (const std::string& each : call.tensor(0).string_values()) changed.push_back(in_case(each, upper));
  return one(Literal::strings(call.tensor(0).dims(), std::move(changed)));
}

Expected<Values> match(const OpCall& call) {
  const auto* pattern = std::get_if<std::string>(call.attributes().find("pattern"));
  auto regex = parse_regex(*pattern);
  if (!regex) return call.fail(regex.error().message);
  std::vector<int64_t> found;
  for (const std::string& each : call.tensor(0).string_values()) {
    if (Result spent = call.spend(static_cast<double>(each.size() * regex->steps.size())); !spent)
      return spent.error();
    found.push_back(matches(*regex, each));
  }
  return one(Literal::of(DType::Bool, call.tensor(0).dims(), found));
}

// The pieces between delimiters, or between runs of blanks if the delimiter is empty.
Strings cut(const std::string& text, const std::string& delimiter, int64_t splits) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  Strings pieces;
  size_t at = delimiter.empty() ? text.find_first_not_of(kBlanks) : 0;
  while (at != text.npos) {
    bool is_last = splits >= 0 && static_cast<int64_t>(pieces.size()) == splits;
    size_t end = is_last             ? text.npos
                 : delimiter.empty() ? text.find_first_of(kBlanks, at)
                                     : text.find(delimiter, at);
    pieces.push_back(text.substr(at, end == text.npos ? end : end - at));
    if (end == text.npos) break;
    at = delimiter.empty() ? text.find_first_not_of(kBlanks, end) : end + delimiter.size();
  }
  return pieces;
}

Expected<Values> split(const OpCall& call) {
  const Attribute* given = call.attributes().find("delimiter");
  std::string delimiter = given ? std::get<std::string>(*given) : "";
  int64_t max = call.integer("pieces");
  Dims dims = call.tensor(0).dims();
  dims.push_back(max);
  auto all = call.allocate(DType::String, dims);
  if (!all) return all.error();
  Strings result;
  std::vector<int64_t> counts;
  for (const std::string& each : call.tensor(0).string_values()) {
    Strings pieces = cut(each, delimiter, call.integer("splits", -1));
    counts.push_back(static_cast<int64_t>(pieces.size()));
    if (counts.back() > max) return call.fail("a string has more than " + std::to_string(max) + " pieces");
    pieces.resize(static_cast<size_t>(max));
    std::move(pieces.begin(), pieces.end(), std::back_inserter(result));
  }
  return Values{RuntimeValue(Literal::strings(dims, std::move(result))),
                RuntimeValue(Literal::of(DType::I64, call.tensor(0).dims(), counts))};
}

} // namespace

Expected<Values> evaluate_text(const OpCall& call) {
  switch (call.opcode()) {
  case Opcode::TextConcatenate: return concatenate(call);
  case Opcode::TextCase: return change_case(call);
  case Opcode::TextFind: return find(call);
  case Opcode::TextMatch: return match(call);
  case Opcode::TextSplit: return split(call);
  default: return call.unsupported("is not evaluated");
  }
}

} // namespace firn::evaluation
