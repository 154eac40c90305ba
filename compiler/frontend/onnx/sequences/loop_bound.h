// Bounds the steps of a loop by its condition, which wants a value that grows by a constant in every step to
// be below another.
#pragma once

#include "compiler/frontend/onnx/sequences/loop.h"

namespace firn::onnx {

// An upper bound on the steps, or nothing if the condition gives none. `parameters` are those of the body:
// the number of the step, the condition and the state, which is `initial` before the first step.
std::optional<int64_t> steps_allowed(NodeContext& node, const Values& parameters, const Values& initial,
                                     const Step& step);

} // namespace firn::onnx
