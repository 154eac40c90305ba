// Verifies the promises of kernels to write in place. may_overwrite() of kernel.h decides what holds.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Checks that a kernel, whose code is valid, keeps Kernel::in_place.
Result verify_in_place(const Kernel& kernel);

} // namespace firn::kernel
