// Estimates how long a kernel runs from its code.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/machine.h"

namespace firn::kernel {

// Cycles of one iteration of the parallel loop if all data is in cache. Every op counts at the rate at which
// the target can start such ops, a loop by its trips (the middle of their range if bounds vary), a branch by
// its longer side. Good for telling whether work is worth sharing, not for choosing between ways of doing it:
// plan predicts cycles for that, and tests/plan/predicted_cycles_test.cpp holds both beside each other.
double count_cycles(const Kernel& kernel, const Machine& target);

} // namespace firn::kernel
