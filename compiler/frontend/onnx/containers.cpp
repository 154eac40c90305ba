// Containers as lists of their elements, and regions' values as the tensors in them.
#include "compiler/frontend/onnx/containers.h"

#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>

namespace firn::onnx {

namespace {

// The instruction that lists these elements, whose number counts towards the budget of the model.
Value list(NodeContext& node, Opcode opcode, Values elements, Type type) {
  size_t& budget = node.state().element_budget;
  if (elements.size() > budget)
    return node.fail("the model's sequences have too many elements, all of their versions counted"), Value{};
  budget -= elements.size();
  Instruction* made = node.make_typed(opcode, std::move(elements), {std::move(type)});
  return made ? made->result() : Value{};
}

void append_tensors(Value value, Values& tensors) {
  if (!is_container(value)) return tensors.push_back(value);
  for (Value element : elements_of(value)) append_tensors(element, tensors);
}

} // namespace

bool is_counted(Value value) {
  if (!value || value.type().kind != Type::Kind::Sequence || value.def->num_operands() != 1) return false;
  const Type &element = *value.type().element, &listed = value.def->operand(0).type();
  return element.is_tensor() && listed.is_tensor() && listed.rank() == element.rank() + 1;
}

Value make_sequence(NodeContext& node, Values elements, const Type& element) {
  if (node.failed()) return {}; // after a failure elements may be null
  auto length = static_cast<int64_t>(elements.size());
  if (length > kMaxLength)
    return node.fail_unsupported("a sequence of " + std::to_string(length) + " elements, the most are " +
                                 std::to_string(kMaxLength)),
           Value{};
  Type type = Type::sequence(elements.empty() ? element : elements[0].type(), std::max<int64_t>(1, length));
  return list(node, Opcode::SequenceMake, std::move(elements), std::move(type));
}

Value make_counted_sequence(NodeContext& node, Value rows) {
  if (!rows) return {};
  std::vector<Dim> dims(rows.type().dims.begin() + 1, rows.type().dims.end());
  int64_t max = std::max<int64_t>(1, rows.type().dims[0].extent.upper_bound());
  Instruction* made =
      node.make_typed(Opcode::SequenceMake, {rows}, {Type::sequence(Type::tensor(rows.dtype(), dims), max)});
  return made ? made->result() : Value{};
}

bool is_map(Value value) {
  return value && value.type().kind == Type::Kind::Sequence &&
         value.type().element->kind == Type::Kind::Sequence;
}

MapParts parts_of(Value map) {
  Values lists = elements_of(map);
  return {elements_of(lists[0])[0], elements_of(lists[1])[0]};
}

Value make_map(Region& region, const MapParts& parts) {
  Values lists;
  for (Value each : {parts.keys, parts.values}) {
    std::vector<Dim> dims(each.type().dims.begin() + 1, each.type().dims.end());
    int64_t max = std::max<int64_t>(1, each.type().dims[0].extent.upper_bound());
    Type list = Type::sequence(Type::tensor(each.dtype(), std::move(dims)), max);
    lists.push_back(region.append(Opcode::SequenceMake, {each}, {list})->result());
  }
  Type type = Type::sequence(lists[0].type(), 2);
  return region.append(Opcode::SequenceMake, std::move(lists), {type})->result();
}

std::optional<Type> common_element(Value sequence) {
  if (is_counted(sequence)) return *sequence.type().element;
  std::optional<Type> common;
  for (Value element : elements_of(sequence)) {
    if (!element.type().is_tensor() || (common && !(*common == element.type()))) return std::nullopt;
    common = element.type();
  }
  return common;
}

Value rows_of(NodeContext& node, Value sequence, const Type& element) {
  if (!sequence || node.failed()) return {};
  Values elements = elements_of(sequence);
  if (is_counted(sequence)) return elements[0];
  if (elements.empty()) {
    std::vector<Dim> dims = element.dims;
    dims.insert(dims.begin(), Dim(0));
    return node.splat(element.dtype, dims, 0);
  }
  for (Value& each : elements) each = node.unsqueeze(each, 0);
  return node.concatenate(std::move(elements), 0);
}

Value make_optional(NodeContext& node, Value held, const Type& element) {
  if (held) return list(node, Opcode::OptionalMake, {held}, Type::optional(held.type()));
  return list(node, Opcode::OptionalMake, {}, Type::optional(element));
}

std::optional<Type> declared_type(const wire::TypeProto& type) {
  if (type.has_tensor_type()) {
    auto dtype = dtype_from_wire(type.tensor_type().elem_type());
    return dtype ? std::optional(Type::tensor(*dtype, {})) : std::nullopt;
  }
  bool sequence = type.has_sequence_type();
  if (!sequence && !type.has_optional_type()) return std::nullopt;
  auto element =
      declared_type(sequence ? type.sequence_type().elem_type() : type.optional_type().elem_type());
  if (!element) return std::nullopt;
  return sequence ? Type::sequence(*element, 1) : Type::optional(*element);
}

Values tensors_in(const Values& values) {
  Values tensors;
  for (Value value : values) append_tensors(value, tensors);
  return tensors;
}

Value with_tensors(NodeContext& node, Value like, const Values& tensors, size_t& at) {
  if (!is_container(like)) return tensors[at++];
  if (is_counted(like)) return make_counted_sequence(node, tensors[at++]);
  Values elements;
  for (Value element : elements_of(like)) elements.push_back(with_tensors(node, element, tensors, at));
  const Type& element = *like.type().element;
  if (like.type().kind == Type::Kind::Sequence) return make_sequence(node, std::move(elements), element);
  return make_optional(node, elements.empty() ? Value{} : elements[0], element);
}

Values with_tensors(NodeContext& node, const Values& like, const Values& tensors) {
  Values values;
  size_t at = 0;
  for (Value each : like) values.push_back(with_tensors(node, each, tensors, at));
  return values;
}

bool have_one_structure(const Values& lhs, const Values& rhs) {
  if (lhs.size() != rhs.size()) return false;
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (lhs[i].type().kind != rhs[i].type().kind || is_counted(lhs[i]) != is_counted(rhs[i])) return false;
    if (is_container(lhs[i]) && !have_one_structure(elements_of(lhs[i]), elements_of(rhs[i]))) return false;
  }
  return true;
}

} // namespace firn::onnx
