// The program that prepares a model's weights where it runs: it reads the raw constants, which the object
// holds, and writes the bytes that the model's own program reads.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/target/target_info.h"

namespace firn::kernel {

// Whether any constant is made from raw ones. If not, the object's own can be read in place.
bool has_raw_forms(const Program& program);

// The arena of the result is laid out as the weights of `program`, whose constants are placed. A constant
// with a raw form is expanded by its kernel, any other is copied. The raw constants have no places yet.
Program make_prepare_program(const Program& program, const TargetInfo& target);

} // namespace firn::kernel
