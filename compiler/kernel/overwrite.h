// The verifier's part of what kernels promise of memory in place; kernel.h has the question itself.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Checks that a kernel, whose code is valid, keeps Kernel::in_place.
Result verify_in_place(const Kernel& kernel);

} // namespace firn::kernel
