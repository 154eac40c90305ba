// Buffers that become one: results written over operands that die, and new values of state over old ones.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::memory {

// Lets steps write over operands that die where their kernels may (kernel::may_overwrite), which then promise
// so. New values of state that steps copy into a state buffer are computed there in the first place wherever
// nothing reads the old value any more; what is left to copy onto itself is dropped.
void merge_in_place(kernel::Program& program);

} // namespace firn::memory
