// Graph inputs become parameters of @main; their symbolic dims become numbers or bounded symbols.
#pragma once

#include "compiler/frontend/onnx/import_state.h"

namespace firn::onnx {

// The elements of a graph input that is a sequence or an optional, as inputs of their own: as many as
// options say. Of a map its keys and its values. Nothing for an input that is none of these, or whose
// elements are no tensors.
std::optional<std::vector<wire::ValueInfoProto>> element_inputs(const wire::ValueInfoProto& input,
                                                                const ImportOptions& options);

// The tensor that the model declares a value to be, its dims as those of inputs. Nothing where one has no
// value: `open` says which.
std::optional<Type> declared_tensor(const wire::ValueInfoProto& value, ImportState& state, std::string& open);

// Adds a parameter per tensor of the graph's inputs that are no initializers, and defines these in `scope`.
void add_graph_inputs(const wire::GraphProto& graph, ImportState& state, Function& main, Scope& scope);

} // namespace firn::onnx
