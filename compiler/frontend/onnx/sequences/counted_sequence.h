// Operators on sequences whose length only a run knows: a tensor has the elements as rows, all of one type.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// SequenceAt, SequenceInsert and SequenceErase for a node whose input 0 has these rows. Gives an element, or
// rows.
Value counted_element(NodeContext& node, Value rows);
Value counted_insert(NodeContext& node, Value rows);
Value counted_erase(NodeContext& node, Value rows);
// ConcatFromSequence; `axis` is an axis of the result.
Value counted_concatenation(NodeContext& node, Value rows, int axis, bool new_axis);
// SplitToSequence of input 0 into pieces of extent 1, as rows. `keep`: pieces keep the axis.
Value counted_pieces(NodeContext& node, int axis, bool keep);
// SequenceMap as a loop, if a sequence among the inputs is counted.
void counted_map(NodeContext& node, const wire::GraphProto& body);

} // namespace firn::onnx
