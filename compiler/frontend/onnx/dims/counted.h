// Values with extents that data decide: each has an upper bound, and the run counts its elements.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// i64[rank, <=n]: the coordinates of elements that are not zero, one column each, in row-major order. `max`:
// a bound on the number of such elements, if the caller knows one.
Value non_zero(NodeContext& node, Value x, int64_t max = INT64_MAX);
// The elements along `axis` for which `condition` (bool[m], m at most the extent) holds. The result's extent
// is counted.
Value compress(NodeContext& node, Value x, int axis, Value condition);

// The first `count` (an i64 scalar) slices of x along `axis`. The result's extent is counted.
Value first_rows(NodeContext& node, Value x, int axis, Value count);

// x padded with zeros behind its elements to `dims`, none of which is smaller than x's: states of loops and
// results of branches want one type.
Value bounded(NodeContext& node, Value x, const std::vector<Dim>& dims);

} // namespace firn::onnx
