// Inputs for runs whose data does not matter.
#pragma once

#include "compiler/driver/actual_dims.h"
#include "compiler/driver/compile.h"

namespace firn::driver {

// Tensors for the parameters of @main: normally distributed floats and small integers. Null for states, which
// go on from run to run. A seed gives the same tensors on every run of one build of Firn.
std::vector<LiteralRef> seeded_inputs(const Compilation& compilation, const ActualDims& dims, uint32_t seed);

} // namespace firn::driver
