// Loops whose steps make the state longer. A tensor that grows is kept in a buffer of its upper bound, and
// its extent is part of the state too. Sequences that grow are the rows of a tensor that grows.
#pragma once

#include "compiler/frontend/onnx/sequences/loop.h"

namespace firn::onnx {

// A part of the state after a step.
struct StateChange {
  Type type;
  bool restructured; // whether it is a sequence of another length now
};

// The loop, which takes at most `bound` steps. Nothing if the state changes in other ways, without a failure
// of the node.
std::optional<LoopResults> make_growing(NodeContext& node, const LoopForm& form,
                                        const std::vector<StateChange>& changes, Dim bound);

} // namespace firn::onnx
