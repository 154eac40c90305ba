// Cutting a tensor along an axis into parts whose sizes are numbers, made of dims, or of the run.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The parts of input 0 of these sizes: i64 scalars, of which messages say that they are elements of input 1.
// A run that computes others than the whole, or parts that do not fit, ends. Empty after a failure.
Values parts_of(NodeContext& node, int axis, const Values& sizes);

} // namespace firn::onnx
