// The rules of kernels of threads. Not for other folders.
#pragma once

#include "compiler/kernel/kernel.h"

namespace firn::kernel {

// Verifies what holds for kernels of threads alone, and that others have none of their ops, types and
// buffers.
Result verify_threads(const Kernel& kernel);

} // namespace firn::kernel
