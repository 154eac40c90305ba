// Values whose extent data decides: a bound, and a count that the run gives.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// i64[rank, <=n]: the coordinates of elements that are not zero, one column each, in row-major order.
Value non_zero(NodeContext& node, Value x);
// The elements along `axis` whose condition holds; bool[m], m at most the extent. The extent is counted.
Value compress(NodeContext& node, Value x, int axis, Value condition);

} // namespace firn::onnx
