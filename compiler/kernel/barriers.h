// Finds where the threads of a block have to wait for each other.
#pragma once

#include "compiler/kernel/kernel.h"

#include <unordered_set>

namespace firn::kernel {

// The ops of a kernel of threads before which all threads of a block wait for each other: among the edges
// between `threads` ops (and loads outside of them), those across which memory passes from one thread to
// another. An edge is such if, since the threads last waited, one side may have written a buffer that the
// other touches.
std::unordered_set<const Op*> barriers_of(const Kernel& kernel);

} // namespace firn::kernel
