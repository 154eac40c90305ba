// The check of composites' operands, attributes and results: part of the verifier.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <string>

namespace firn {

// The error in an activation, a softmax, a normalisation or a loss over classes that has not the form that
// composites.h and class_losses.h give it, which kernels and derivatives rely on. Nothing if it is right, and
// for every other composite: those are checked where they are read.
std::optional<std::string> check_composite(const Instruction& composite);

} // namespace firn
