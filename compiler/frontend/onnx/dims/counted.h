// Values whose extent data decides: a bound, and a count that the run gives.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// i64[rank, <=n]: the coordinates of elements that are not zero, one column each, in row-major order. No more
// than `most` are, by what the caller knows.
Value non_zero(NodeContext& node, Value x, int64_t max = INT64_MAX);
// The elements along `axis` whose condition holds; bool[m], m at most the extent. The extent is counted.
Value compress(NodeContext& node, Value x, int axis, Value condition);

// The first `count` rows (i64[]) along `axis`.
Value first_rows(NodeContext& node, Value x, int axis, Value count);

// A value of any extents within bounds as one of those extents, for places that want one type; what is beyond
// is zero.
Value bounded(NodeContext& node, Value x, const std::vector<Dim>& dims);

} // namespace firn::onnx
