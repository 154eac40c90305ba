// Operators on sequences whose length only a run knows: a tensor has the elements as rows, all of one type.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// SequenceAt, SequenceInsert and SequenceErase of a node whose input 0 has these rows: an element, or rows.
Value counted_element(NodeContext& node, Value rows);
Value counted_insert(NodeContext& node, Value rows);
Value counted_erase(NodeContext& node, Value rows);
// ConcatFromSequence; the axis is one of the result.
Value counted_concatenation(NodeContext& node, Value rows, int axis, bool new_axis);
// SplitToSequence of input 0 in pieces of one each: rows, which have the axis where it is kept.
Value counted_pieces(NodeContext& node, int axis, bool keep);
// SequenceMap where a sequence among the inputs is counted, as a loop.
void counted_map(NodeContext& node, const wire::GraphProto& body);

} // namespace firn::onnx
