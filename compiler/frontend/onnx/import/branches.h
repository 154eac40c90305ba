// The importer of If: one branch in place if the condition is known now, else an If of the graph IR.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

void import_if(NodeContext& node);

// A bool scalar from a condition of one element; null after a failure.
Value condition_scalar(NodeContext& node, int input);

} // namespace firn::onnx
