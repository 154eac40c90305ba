// The account of memory by which rematerialize decides.
#pragma once

#include "compiler/passes/pass.h"

namespace firn {

// Bytes of the parameters and of the results that are alive at once when most are, in the order of the
// function's instructions. Memory that kernels take while they run is not known before they are lowered.
int64_t predicted_memory(const Function& function, const Machine& target);

} // namespace firn
