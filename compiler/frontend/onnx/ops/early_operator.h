// Operators that ONNX Runtime takes below the opset that brought them to ONNX. Exporters write such models,
// so they are taken here as well.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Says so of a node whose operator there is since opset `since`.
inline void warn_early(NodeContext& node, int since) {
  node.warn("is of opset " + std::to_string(since) + " on, the model's is " + std::to_string(node.opset()) +
            "; it is taken as ONNX Runtime takes it");
}

} // namespace firn::onnx
