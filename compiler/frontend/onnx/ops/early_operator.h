// Operators that ONNX Runtime accepts below the opset that added them to ONNX. Exporters write such models,
// so Firn accepts them as well.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Warns that the node's operator exists only since opset `since`.
inline void warn_early(NodeContext& node, int since) {
  node.warn("is of opset " + std::to_string(since) + " on, the model's is " + std::to_string(node.opset()) +
            "; it is taken as ONNX Runtime takes it");
}

} // namespace firn::onnx
