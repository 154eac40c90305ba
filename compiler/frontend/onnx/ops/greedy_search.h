// Generation of text by a decoder that is a subgraph.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

void import_greedy_search(NodeContext& node);

} // namespace firn::onnx
