// Extents that an operator wants to be equal, if only a run knows whether they are.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Whether a run may find the two equal.
bool may_be_equal(const Dim& lhs, const Dim& rhs);

// The functions below warn, unless an extent is counted: a run in which the extents do not fit ends.

// x with these extents, aligned at the last dim; x stays as it is if they cannot be equal. `stretches`:
// extents of 1 are broadcast.
Value with_extents(NodeContext& node, Value x, const std::vector<Dim>& dims, bool stretches = false);
// The input with these dims, or with a shape that broadcasts to them if `stretches`. Null after a failure,
// whose message gives the input's type.
Value input_with_extents(NodeContext& node, int input, const std::vector<Dim>& dims, bool stretches = false);
// The parts concatenated along `axis`, all with the first one's other extents.
Value concatenate_where_equal(NodeContext& node, Values parts, int axis);
// Gives both values one extent along these axes, if theirs may be equal. `stretches`: either may be 1 in a
// run, and is then broadcast; a static dim of 1 stays.
void meet(NodeContext& node, Value& lhs, int lhs_axis, Value& rhs, int rhs_axis, bool stretches = false);

// The dims to which values of these dims broadcast, if a run finds that they do; nothing if they cannot. Each
// value takes these dims by broadcast_where_equal.
std::optional<std::vector<Dim>> unified_dims(NodeContext& node, const std::vector<Dim>& lhs,
                                             const std::vector<Dim>& rhs);
// x with dims that unified_dims made of its own and others; a run in which they do not broadcast ends.
Value broadcast_where_equal(NodeContext& node, Value x, const std::vector<Dim>& dims);

// x in another shape; a run in which that has another number of elements ends.
Value reshape_where_equal(NodeContext& node, Value x, std::vector<Dim> dims);

} // namespace firn::onnx
