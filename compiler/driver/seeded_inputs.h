// Inputs for runs of which only the code matters, not the data.
#pragma once

#include "compiler/driver/actual_dims.h"
#include "compiler/driver/compile.h"

namespace firn::driver {

// For the parameters of @main: normal floats, small integers, of no meaning but ordinary size. Null for
// states, which go on from run to run. The same on every run of one build of Firn.
std::vector<LiteralRef> seeded_inputs(const Compilation& compilation, const ActualDims& dims, uint32_t seed);

} // namespace firn::driver
