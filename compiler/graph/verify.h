// The verifier of the graph IR: run after the frontend and after every pass that changed something.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Checks the invariants listed at the head of verify.cpp; the error names the function and the instruction.
// A failure is always a bug of Firn or of hand-written text, never of a model.
Result verify(const Module& module);

} // namespace firn
