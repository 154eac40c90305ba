// A report of a GPU's program without a GPU: how its kernels fill it, and the time that they take at least.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// A line for each call of the program, in order, and the sum, as text. Times are those of the GPU's memory
// and of its pipes at their full rates, whichever is longer, and the gap between two launches.
std::string gpu_report_text(const Compilation& compilation);

} // namespace firn::driver
