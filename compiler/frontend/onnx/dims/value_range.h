// Ranges of numbers that only a run knows. Bounds of loops and of extents come from here.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Bounds of all elements of a value except NaN, which an extent cannot be: a run clamps before it counts.
struct ValueRange {
  double min, max;
};

ValueRange range_of(const NodeContext& node, Value value);

// The largest value of an i64 scalar, if it is below 2^31 and so can be an extent.
std::optional<int64_t> max_of(const NodeContext& node, Value value);

} // namespace firn::onnx
