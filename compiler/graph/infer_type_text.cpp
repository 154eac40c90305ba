// Types of ops on text.
#include "compiler/graph/infer_type_rules.h"
#include "compiler/support/regex.h"

namespace firn {

std::optional<Diagnostic> TypeRules::not_text(int operand) const {
  const Type& found = type(operand);
  if (found.is_tensor() && found.dtype == DType::String) return std::nullopt;
  return error("operand " + std::to_string(operand) + " is " + found.to_string() + ", wants strings");
}

Expected<TypeRules::Types> TypeRules::text_case() {
  if (auto wrong = not_text(0)) return *wrong;
  if (!attribute<Word>("to")) return missing("to");
  return Types{type(0)};
}

Expected<TypeRules::Types> TypeRules::text_concatenate() {
  for (int i : {0, 1})
    if (auto wrong = not_text(i)) return *wrong;
  auto result = common_type(0);
  if (!result) return result.error();
  return Types{*result};
}

Expected<TypeRules::Types> TypeRules::text_find() {
  for (int i : {0, 1})
    if (auto wrong = not_text(i)) return *wrong;
  if (rank(1) != 1) return error("keys are " + type(1).to_string() + ", wants a vector");
  if (!operands_[1].def->is(Opcode::Constant)) return error("keys are no constant");
  return Types{Type::tensor(DType::I64, type(0).dims)};
}

Expected<TypeRules::Types> TypeRules::text_match() {
  if (auto wrong = not_text(0)) return *wrong;
  const auto* pattern = attribute<std::string>("pattern");
  if (!pattern) return missing("pattern");
  auto regex = parse_regex(*pattern);
  if (!regex) return Diagnostic{regex.error().fault, error("pattern " + regex.error().message).message};
  return Types{Type::tensor(DType::Bool, type(0).dims)};
}

Expected<TypeRules::Types> TypeRules::text_split() {
  if (auto wrong = not_text(0)) return *wrong;
  const auto *pieces = attribute<int64_t>("pieces"), *splits = attribute<int64_t>("splits");
  if (!pieces || *pieces < 1 || !is_small(*pieces)) return error("pieces are missing, below 1 or too many");
  if (splits && *splits < 0) return error("splits are below 0");
  std::vector<Dim> dims = type(0).dims;
  dims.push_back(Dim(*pieces));
  return Types{Type::tensor(DType::String, dims), Type::tensor(DType::I64, type(0).dims)};
}

} // namespace firn
