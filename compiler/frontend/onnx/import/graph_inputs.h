// Graph inputs become parameters of @main; their symbolic dims become numbers or bounded symbols.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// The elements of a graph input that is a sequence or an optional, as inputs of their own: as many as options
// say. A map gives its keys and its values. Nothing for an input that is none of these, or whose elements are
// no tensors.
std::optional<std::vector<wire::ValueInfoProto>> element_inputs(const wire::ValueInfoProto& input,
                                                                const ImportOptions& options);

// The tensor type that the model declares for a value, with dims bound as those of inputs are. Nothing if a
// dim cannot be bound: `open` says which.
std::optional<Type> declared_tensor(const wire::ValueInfoProto& value, ImportState& state, std::string& open);

// Adds a parameter for each tensor of the graph's inputs that have no initializer, and defines the inputs in
// `scope`.
void add_graph_inputs(const wire::GraphProto& graph, ImportState& state, Function& main, Scope& scope);

} // namespace firn::onnx
