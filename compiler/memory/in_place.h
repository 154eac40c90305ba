// Buffers that become one: results written over operands that die, and new values of state over old ones.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::memory {

// Lets steps write where Step::in_place allows it. New values of state that steps copy into a state buffer
// are computed there in the first place wherever nothing reads the old value any more; what is left to copy
// onto itself is dropped.
void merge_in_place(kernel::Program& program);

} // namespace firn::memory
