// Checks input dtypes of a node against the types column of its operator's row.
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"

namespace firn::onnx {
namespace {

// Takes the text before `separator` off `rest`.
std::string_view next_part(std::string_view& rest, char separator) {
  size_t end = rest.find(separator);
  std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

bool in_class(DType dtype, std::string_view name) {
  if (name == "any") return true;
  if (name == "num") return is_float(dtype) || is_integer(dtype);
  if (name == "float") return is_float(dtype);
  if (name == "int") return is_integer(dtype);
  if (name == "signed") return is_signed(dtype);
  if (name == "unsigned") return is_unsigned(dtype);
  if (name == "complex") return is_complex(dtype);
  if (name == "index") return dtype == DType::I32 || dtype == DType::I64;
  return dtype_name(dtype) == name;
}

bool in_classes(DType dtype, std::string_view classes) {
  while (!classes.empty())
    if (in_class(dtype, next_part(classes, '|'))) return true;
  return false;
}

struct Constraint {
  std::string_view variable, classes, tolerated;
};

// `Var=class|class~class`, `class`, or `Var`: a word that starts with a capital letter is a variable.
Constraint parse_constraint(std::string_view word) {
  Constraint constraint;
  if (word[0] >= 'A' && word[0] <= 'Z') {
    constraint.variable = next_part(word, '=');
    if (word.empty()) return constraint;
  }
  constraint.classes = next_part(word, '~');
  constraint.tolerated = word;
  return constraint;
}

std::string shown_classes(std::string_view classes) {
  std::string text;
  while (!classes.empty()) text += (text.empty() ? "" : " or ") + std::string(next_part(classes, '|'));
  return text;
}

bool check_input(NodeContext& node, int index, const Constraint& constraint) {
  const Type& type = node.input(index).type();
  if (constraint.classes.empty() || constraint.classes == "value") return true;
  if (type.is_tensor() && in_classes(type.dtype, constraint.classes)) return true;
  std::string text =
      node.input_label(index) + " is " + type.to_string() + ", wants " + shown_classes(constraint.classes);
  if (!type.is_tensor() || !in_classes(type.dtype, constraint.tolerated)) return node.check(false, text);
  node.warn(text + "; accepted");
  return true;
}

} // namespace

bool check_types(NodeContext& node, const OperatorRow& row) {
  std::string_view rest = row.types;
  std::vector<std::pair<std::string_view, int>> variables; // each with its first input
  std::string_view word;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!rest.empty()) word = next_part(rest, ' ');
    if (word.empty() || !node.has_input(i)) continue;
    Constraint constraint = parse_constraint(word);
    if (!check_input(node, i, constraint)) return false;
    if (constraint.variable.empty()) continue;
    int first = i;
    for (auto& [name, input] : variables)
      if (name == constraint.variable) first = input;
    if (first == i)
      variables.emplace_back(constraint.variable, i);
    else if (!node.check_same_dtype(i, first))
      return false;
  }
  return true;
}

} // namespace firn::onnx
