// Splits a tensor along an axis into parts whose sizes are numbers, expressions of dims, or values of the
// run.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Splits input 0 into parts of these sizes, i64 scalars that messages call elements of input 1. A run in
// which the parts do not add up to the extent ends. Empty after a failure.
Values parts_of(NodeContext& node, int axis, const Values& sizes);

} // namespace firn::onnx
