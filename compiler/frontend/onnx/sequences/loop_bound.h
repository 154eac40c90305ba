// How often a loop can go round by its own condition: a value that grows by a constant in every step, and
// that the condition wants below another.
#pragma once

#include "compiler/frontend/onnx/sequences/loop.h"

namespace firn::onnx {

// Steps at most, or nothing where the condition says nothing of it. `parameters` are those of the body: the
// number of the step, the condition and the state, which is `initial` before the first step.
std::optional<int64_t> steps_allowed(NodeContext& node, const Values& parameters, const Values& initial,
                                     const Step& step);

} // namespace firn::onnx
