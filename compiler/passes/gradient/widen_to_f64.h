// A module that computes in f64 what it has computed in narrower floats: finite differences need the digits.
#pragma once

#include "compiler/graph/module.h"

namespace firn::gradient {

// Makes f64 of f32, f16 and bf16: of every value, constant and attribute. Floats of 8 and fewer bits stay.
void widen_to_f64(Module& module);

} // namespace firn::gradient
