// Positions that only a run counts, for NonZero and the operators that select what a condition holds for.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The coordinates of elements of x that are not zero, i64 [rank, <=count], in row-major order; a constant
// where x is one. Null after a failure.
Value non_zero(NodeContext& node, Value x);

} // namespace firn::onnx
