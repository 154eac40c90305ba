// Predicts how long runs take on the machine that a model is compiled for, without that machine.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Cycles of a run, counted from its kernels and the weights that they read. Ratios between programs for one
// machine are right within about a fifth; the number itself is too large, for cores do several things at a
// time.
double predicted_cycles(const Compilation& compilation);

} // namespace firn::driver
