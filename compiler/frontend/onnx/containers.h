// Sequences, optionals and maps. Every value of such a type is the result of an instruction that lists its
// elements (sequence_make, optional_make). A sequence whose length only a run knows lists one tensor, whose
// rows are the elements. Readers take the elements from the instruction, so that none of these instructions
// has a use in the end.
//
// A map is a sequence of two counted sequences: its keys, and its values in the same order. A sequence of
// maps with the same keys is one such map, whose values have a row for each map.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Elements of one sequence at most.
inline constexpr int64_t kMaxLength = 4096;

inline bool is_container(Value value) {
  return value && !value.type().is_tensor();
}
// Whether a sequence is the rows of a tensor, as many as the run counts: it lists that tensor alone, which
// has one dim more than an element.
bool is_counted(Value value);
// The elements of a sequence in order, or the one that an optional holds, if any. A counted sequence gives
// its tensor.
inline Values elements_of(Value container) {
  return container.def->operands();
}

// A sequence of `elements`, which have type `element` but for their dims; fails beyond kMaxLength elements.
Value make_sequence(NodeContext& node, Values elements, const Type& element);
// A sequence whose elements are the rows of a tensor.
Value make_counted_sequence(NodeContext& node, Value rows);
// Without `held`: an optional of type `element` that is empty.
Value make_optional(NodeContext& node, Value held, const Type& element);

bool is_map(Value value);
// Keys [n], i64 or strings, and values: [n] for a map, [maps,n] for a sequence of maps.
struct MapParts {
  Value keys, values;
};
MapParts parts_of(Value map);
// The map, listed at the end of the region.
Value make_map(Region& region, const MapParts& parts);

// The type of all elements of a sequence; nothing if it has none, or elements of several types.
std::optional<Type> common_element(Value sequence);
// A sequence of elements of this type as the rows of a tensor.
Value rows_of(NodeContext& node, Value sequence, const Type& element);

// The type that a model declares, a tensor's without its dims; nothing if Firn has no such type.
std::optional<Type> declared_type(const wire::TypeProto& type);

// The tensors that values are or hold, in order.
Values tensors_in(const Values& values);
// A value with the structure of `like`, whose tensors are the next ones of `tensors`. `at` is the first of
// them, and moves behind the last.
Value with_tensors(NodeContext& node, Value like, const Values& tensors, size_t& at);
// Values with the structures of `like`, which take all of `tensors`.
Values with_tensors(NodeContext& node, const Values& like, const Values& tensors);
// Whether both hold equally many tensors in the same places, with counted sequences in the same places.
bool have_one_structure(const Values& lhs, const Values& rhs);

} // namespace firn::onnx
