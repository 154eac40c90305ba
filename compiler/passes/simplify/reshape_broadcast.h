// Reshapes of broadcasts, written as broadcasts.
#pragma once

#include "compiler/graph/builder.h"

namespace firn {

// reshape(broadcast(x)) = broadcast(reshape(x)), as a value of type `result`; no value, and nothing made,
// unless every group of dims that the reshape merges or splits is either all of x's or all repetition.
Value reshape_broadcast(Instruction& broadcast, const Type& result, GraphBuilder& builder);

} // namespace firn
