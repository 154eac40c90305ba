// What is known of a GPU's program without one: how its kernels fill the GPU, and the time that they take at
// least.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// A line for each call of the program, in order, and the sum, as text. Times are those of the GPU's memory and
// of its pipes at their full rates, whichever is longer, and the gap between two launches.
std::string gpu_report_text(const Compilation& compilation);

} // namespace firn::driver
