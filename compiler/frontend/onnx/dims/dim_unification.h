// Extents that meet in an operator and are not seen to be equal, nor to differ: a run finds out.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Whether a run may find the two equal.
bool may_be_equal(const Dim& lhs, const Dim& rhs);

// These give a warning where no data decide whether the extents fit.

// x with these extents, aligned at their ends; those that cannot be equal stay. `stretches`: 1 stands for
// all.
Value with_extents(NodeContext& node, Value x, const std::vector<Dim>& dims, bool stretches = false);
// The input with just these dims, or of a shape that broadcasts to them if it `stretches`; null after a
// failure, which says what else it is.
Value input_with_extents(NodeContext& node, int input, const std::vector<Dim>& dims, bool stretches = false);
// The parts joined along `axis`, all with the first one's extents beside it.
Value concatenate_where_equal(NodeContext& node, Values parts, int axis);
// Both with one extent along these axes, where theirs may be equal; others stay. `stretches`: each may also
// be 1 in a run, which then stands for all of the other; a dim of 1 stays.
void meet(NodeContext& node, Value& lhs, int lhs_axis, Value& rhs, int rhs_axis, bool stretches = false);

// The dims to which values of these dims broadcast where a run finds that they do; nothing if none can. Each
// value takes them with broadcast_where_equal.
std::optional<std::vector<Dim>> unified_dims(NodeContext& node, const std::vector<Dim>& lhs,
                                             const std::vector<Dim>& rhs);
// x with dims that unified_dims made of its own and others; a run ends where they do not broadcast.
Value broadcast_where_equal(NodeContext& node, Value x, const std::vector<Dim>& dims);

// x in a shape of which a run ends where it has another number of elements than x.
Value reshape_where_equal(NodeContext& node, Value x, std::vector<Dim> dims);

} // namespace firn::onnx
