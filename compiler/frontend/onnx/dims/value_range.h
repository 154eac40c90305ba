// What is known of numbers that only a run knows: how small and how large they can be. Bounds of loops and of
// extents come from here.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// No element of a value is outside, NaN aside: a run clamps what it makes an extent of.
struct ValueRange {
  double min, max;
};

ValueRange range_of(const NodeContext& node, Value value);

// An i64 scalar that a run computes, as an extent: its largest value, if that is below 2^31.
std::optional<int64_t> max_of(const NodeContext& node, Value value);

} // namespace firn::onnx
