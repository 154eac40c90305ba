// Convolutions by Winograd's algorithm, as plan/winograd.h describes them, as kernels.
#pragma once

#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/plan/winograd.h"

namespace firn::lower {

// The filters as the model stores them, and the kernel that does what plan::pack_winograd_filters() does.
kernel::RawForm raw_winograd_filters(const plan::WinogradGeometry& plan, LiteralRef filters);

// Emits the kernel. `inputs` and `products` are the parameters of the scratch V and M.
void emit_winograd(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                   const ContractionBinding& binding, int inputs, int products);

} // namespace firn::lower
