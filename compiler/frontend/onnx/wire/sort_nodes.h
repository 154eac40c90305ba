// The nodes of a model in an order of use, which files need not have: converters append what they insert.
#pragma once

#include "compiler/support/diagnostic.h"

namespace firn::onnx {

namespace wire {
class ModelProto;
} // namespace wire

// Puts every node of the graph, of its functions and of the graphs within nodes behind those that make what
// it reads, or what graphs within it capture. Of the nodes that could come next, the first of the file does:
// lists that are in order stay as they are. Refuses cycles, but for those in graphs within nodes, which keep
// their order: a name there may mean a value of the graph around it.
Result sort_nodes(wire::ModelProto& model);

} // namespace firn::onnx
