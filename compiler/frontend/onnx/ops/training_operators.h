// Importers of ai.onnx.preview.training that have a file of their own.
#pragma once

namespace firn::onnx {

class NodeContext;

void import_gradient(NodeContext& node);

} // namespace firn::onnx
