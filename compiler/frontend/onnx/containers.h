// Sequences, optionals and maps. A value of such a type is the instruction that lists its elements
// (sequence_make, optional_make), wherever it comes from, or, for a sequence whose length only a run knows,
// the one that says which tensor has them as rows. What reads it takes the elements from there, so that
// none of these instructions has a use in the end.
//
// A map is a sequence of two counted sequences: of its keys, and of its values in the same order. Maps of
// one list of keys, in a sequence, are one such map whose values have a row for each.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Elements of one sequence at most.
inline constexpr int64_t kMaxLength = 4096;

inline bool is_container(Value value) {
  return value && !value.type().is_tensor();
}
// Whether a sequence is the rows of a tensor, and so many as that has: it lists that alone, which has one dim
// more than an element.
bool is_counted(Value value);
// The elements of a sequence in order, or what an optional holds, if anything. Of a counted sequence: the
// tensor.
inline Values elements_of(Value container) {
  return container.def->operands();
}

// Of elements of type `element`, whose dims may differ; at most kMaxLength.
Value make_sequence(NodeContext& node, Values elements, const Type& element);
// The rows of a tensor.
Value make_counted_sequence(NodeContext& node, Value rows);
// Without `held`: an optional of type `element` that is empty.
Value make_optional(NodeContext& node, Value held, const Type& element);

bool is_map(Value value);
// Of a map: keys [n], i64 or strings, and values [n]; of a sequence of maps values [maps,n].
struct MapParts {
  Value keys, values;
};
MapParts parts_of(Value map);
// The map, listed at the end of the region.
Value make_map(Region& region, const MapParts& parts);

// The type of all elements of a sequence; nothing where there are none, or of several types.
std::optional<Type> common_element(Value sequence);
// A sequence of elements of this type as the rows of a tensor.
Value rows_of(NodeContext& node, Value sequence, const Type& element);

// The type that a model declares; that of a tensor without its dims. Nothing for what Firn has no type for.
std::optional<Type> declared_type(const wire::TypeProto& type);

// The tensors that values are or hold, in order.
Values tensors_in(const Values& values);
// What is as `like` but for its tensors, which are the next ones of `tensors`, from `at` on.
Value with_tensors(NodeContext& node, Value like, const Values& tensors, size_t& at);
// The same of several values and all of `tensors`.
Values with_tensors(NodeContext& node, const Values& like, const Values& tensors);
// Whether values hold as many tensors in the same places, counted sequences in the same ones.
bool have_one_structure(const Values& lhs, const Values& rhs);

} // namespace firn::onnx
