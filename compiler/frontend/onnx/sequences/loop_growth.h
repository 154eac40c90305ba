// Loops whose steps make the state longer: what grows lies in a buffer of its bound, and how much of it there
// is is part of the state too. Sequences that grow are the rows of a tensor that does.
#pragma once

#include "compiler/frontend/onnx/sequences/loop.h"

namespace firn::onnx {

// What a step makes of a part of the state.
struct StateChange {
  Type type;
  bool restructured; // a sequence of another length
};

// The loop, of `bound` steps at most. Nothing where the state changes in other ways than this; no failure of
// the node then.
std::optional<LoopResults> make_growing(NodeContext& node, const LoopForm& form,
                                        const std::vector<StateChange>& changes, Dim bound);

} // namespace firn::onnx
