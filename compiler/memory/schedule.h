// The order of execution, chosen before lowering.
#pragma once

#include "compiler/graph/module.h"

namespace firn::memory {

// Reorders the instructions of @main so that the peak of live bytes is low: greedy choice among the
// instructions that are ready, kept only if its peak is below that of the given order. Returns whether the
// order changed.
bool minimize_peak(Module& module);

} // namespace firn::memory
