// Graph inputs become parameters of @main; their symbolic dims become numbers or bounded symbols.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// Adds a parameter per graph input that is not an initializer and defines it in `scope`.
void add_graph_inputs(const wire::GraphProto& graph, ImportState& state, Function& main, Scope& scope);

} // namespace firn::onnx
