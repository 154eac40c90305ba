// Machines as strict numerics have them: without instructions for floats that do not follow IEEE 754.
#pragma once

#include "compiler/target/machine.h"

namespace firn {

// Whether vectors of floats take subnormal numbers for zeros, whatever the program sets (MVE).
bool vectors_flush_subnormals(const Machine& machine);

// The machine without such vectors.
Machine with_strict_floats(Machine machine);

} // namespace firn
