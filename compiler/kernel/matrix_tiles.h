// The verifier's part of kernels with registers of matrices.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// What is wrong with a kernel's tiles; empty: nothing.
std::string check_tiles(const Kernel& kernel);
// Of an op of the group Tile, or that loads or stores a tile of a buffer that exists.
std::string check_tile_op(const Kernel& kernel, const Op& op);

// Elements of the buffer from the first that a tile's load or store touches up to behind the last.
int64_t tile_extent(const Kernel& kernel, const Op& op);

} // namespace firn::kernel
