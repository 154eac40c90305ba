// Einsum.
#pragma once

namespace firn::onnx {

class NodeContext;

void import_einsum(NodeContext& node);

} // namespace firn::onnx
