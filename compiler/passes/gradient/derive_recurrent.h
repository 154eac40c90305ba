// The adjoint of recurrent layers: see derive_recurrent.cpp.
#pragma once

#include "compiler/passes/gradient/vector_jacobian.h"

namespace firn::gradient {

// Whether the composite is a recurrent layer that derive_recurrent derives, with any of its options. Layers
// over integers with scales, and those that hold their residuals already, are derived through their bodies.
bool has_recurrent_rule(const Instruction& composite);

void derive_recurrent(VectorJacobian& v);

} // namespace firn::gradient
