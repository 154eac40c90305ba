// The verifier's checks of matrix tiles.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Says what is wrong with a kernel's tiles; empty if nothing is.
std::string check_tiles(const Kernel& kernel);
// Says what is wrong with an op of the group Tile, or with a load or store of a tile whose buffer exists.
std::string check_tile_op(const Kernel& kernel, const Op& op);

// The number of elements of the buffer from the first to the last that a tile's load or store touches.
int64_t tile_extent(const Kernel& kernel, const Op& op);

} // namespace firn::kernel
