// Values with extents that data decide: each has an upper bound, and the run counts its elements.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// i64[rank, <=n]: the coordinates of elements that are not zero, one column each, in row-major order. The
// caller may know that no more than `max` elements are.
Value non_zero(NodeContext& node, Value x, int64_t max = INT64_MAX);
// The elements along `axis` for which `condition` (bool[m], m at most the extent) holds. The result's extent
// is counted.
Value compress(NodeContext& node, Value x, int axis, Value condition);

// The first `count` rows (i64[]) along `axis`.
Value first_rows(NodeContext& node, Value x, int axis, Value count);

// A value whose extents are no larger than `dims`, padded with zeros to `dims`, for places that want one
// type.
Value bounded(NodeContext& node, Value x, const std::vector<Dim>& dims);

} // namespace firn::onnx
