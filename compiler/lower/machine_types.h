// The types of the kernel IR that hold elements of a graph value.
#pragma once

#include "compiler/graph/dtype.h"
#include "compiler/kernel/kernel.h"

namespace firn::lower {

// Whether elements of this dtype can be held by machine types: not complex.
bool has_machine_type(DType dtype);
// The scalar that holds an element in memory; Bool lies as I8, small floats as their codes, and strings as
// address and size. Of packed types it holds several.
kernel::Scalar memory_scalar(DType dtype);
// The type of an element in computations: f16 and bf16 are f32 values that the narrow type can represent,
// Bool is I1, small floats are codes and packed integers their values in I8 (scalar_ops.h).
kernel::MachineType value_type(DType dtype, int lanes = 1);

} // namespace firn::lower
