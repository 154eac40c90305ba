// Constants in the layout of the graph value that they are.
#pragma once

#include "compiler/graph/type.h"
#include "compiler/support/packing.h"

namespace firn::lower {

// The elements of a tensor as `type` lays them out; unused lanes of blocks are zeros, and so is what is left
// of `bytes`, at least as many as those of the type.
Packing layout_packing(const Type& type, int64_t bytes);

} // namespace firn::lower
