// How long runs take on the machine that a model is compiled for, as far as that is told without one.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Cycles of a run, counted from its kernels and what they read of the weights. What programs for one machine
// take compares within about a fifth; the number itself is too large, for cores do several things at a time.
double predicted_cycles(const Compilation& compilation);

} // namespace firn::driver
