// Convolutions by Winograd's algorithm, as plan/winograd.h describes them, as kernels.
#pragma once

#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/plan/winograd.h"

namespace firn::lower {

// Emits the kernel. `inputs` and `products` are the parameters of the scratch V and M; of a plan that is
// apart `inputs` is V of all batches as emit_winograd_inputs() writes it.
void emit_winograd(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                   const ContractionBinding& binding, int inputs, int products);
void emit_winograd_inputs(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                          const ContractionBinding& binding, int inputs);

} // namespace firn::lower
