// Copies of tensors between memory of different orders (plan/relayout/relayout.h), as kernels.
#pragma once

#include "compiler/lower/element/element_emitter.h"
#include "compiler/plan/relayout/relayout.h"

namespace firn::lower {

// Elements of `dtype`, which have 32 bits, in vectors and squares of `lanes`. `source`, `target`: parameters
// of the kernel.
void emit_relayout(KernelMaker& maker, const plan::Relayout& relayout, int64_t lanes, DType dtype, int source,
                   int target);

} // namespace firn::lower
