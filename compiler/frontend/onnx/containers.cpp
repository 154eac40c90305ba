// Containers as lists of their elements, and regions' values as the tensors in them.
#include "compiler/frontend/onnx/containers.h"

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

namespace {

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

Value make_sequence(NodeContext& node, Values elements, const Type& element) {
  if (node.failed()) return {}; // and so may elements be null
  auto length = static_cast<int64_t>(elements.size());
  if (length > kMaxLength)
    return node.fail_unsupported("a sequence of " + std::to_string(length) + " elements, the most are " +
                                 std::to_string(kMaxLength)),
           Value{};
  Type type = Type::sequence(elements.empty() ? element : elements[0].type(), std::max<int64_t>(1, length));
  return list(node, Opcode::SequenceMake, std::move(elements), std::move(type));
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
    if (lhs[i].type().kind != rhs[i].type().kind) return false;
    if (is_container(lhs[i]) && !have_one_structure(elements_of(lhs[i]), elements_of(rhs[i]))) return false;
  }
  return true;
}

} // namespace firn::onnx
