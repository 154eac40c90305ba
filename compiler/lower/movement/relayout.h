// Copies of tensors between memory of different orders (plan/relayout.h), as kernels.
#pragma once

#include "compiler/lower/element/element_emitter.h"
#include "compiler/plan/relayout.h"

namespace firn::lower {

// Elements of `dtype`, which have 32 bits. `source`, `target`: the kernel's parameters.
void emit_relayout(KernelMaker& maker, const plan::Relayout& relayout, DType dtype, int source, int target);

} // namespace firn::lower
