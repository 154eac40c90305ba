// What running a kernel takes, counted from its code.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/target_info.h"

namespace firn::kernel {

// Cycles of one iteration of the parallel loop, all data near: every op at the rate at which the target can
// start such ops, loops by their trips, those whose bounds vary by the middle of what they can be, of a
// branch the longer side. Good for telling whether work is worth sharing, not for choosing between ways of
// doing it.
double count_cycles(const Kernel& kernel, const TargetInfo& target);

} // namespace firn::kernel
