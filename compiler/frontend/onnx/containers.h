// Sequences and optionals. While a model is read, how many elements each has is known: a value of such a type
// is the instruction that lists them (sequence_make, optional_make), wherever it comes from. What reads it
// takes the elements from there, so that none of these instructions has a use in the end.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Elements of one sequence at most.
inline constexpr int64_t kMaxLength = 4096;

inline bool is_container(Value value) {
  return value && !value.type().is_tensor();
}
// The elements of a sequence in order, or what an optional holds, if anything.
inline Values elements_of(Value container) {
  return container.def->operands();
}

// Of elements of type `element`, whose dims may differ; at most kMaxLength.
Value make_sequence(NodeContext& node, Values elements, const Type& element);
// Without `held`: an optional of type `element` that is empty.
Value make_optional(NodeContext& node, Value held, const Type& element);

// The type that a model declares; that of a tensor without its dims. Nothing for what Firn has no type for.
std::optional<Type> declared_type(const wire::TypeProto& type);

// The tensors that values are or hold, in order.
Values tensors_in(const Values& values);
// What is as `like` but for its tensors, which are the next ones of `tensors`, from `at` on.
Value with_tensors(NodeContext& node, Value like, const Values& tensors, size_t& at);
// The same of several values and all of `tensors`.
Values with_tensors(NodeContext& node, const Values& like, const Values& tensors);
// Whether values hold as many tensors in the same places.
bool have_one_structure(const Values& lhs, const Values& rhs);

} // namespace firn::onnx
