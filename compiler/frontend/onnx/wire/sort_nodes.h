// The nodes of a model in an order of use, which files need not have: converters append what they insert.
#pragma once

#include "compiler/support/diagnostic.h"

namespace firn::onnx {

namespace wire {
class ModelProto;
} // namespace wire

// Puts every node, in the graph, its functions and graphs within nodes, behind the nodes whose outputs it
// reads or its inner graphs capture. If several nodes could come next, the first in the file does, so that
// lists in order stay as they are. Refuses cycles, except in graphs within nodes, which keep their order: a
// name there may mean a value of the graph around it.
Result sort_nodes(wire::ModelProto& model);

} // namespace firn::onnx
