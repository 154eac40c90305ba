// Convolutions by Winograd's algorithm, as plan/winograd/winograd.h describes them, as kernels.
#pragma once

#include "compiler/lower/contraction/contraction_ops.h"
#include "compiler/plan/winograd/winograd.h"

namespace firn::lower {

// How the filters of integers are packed.
PackedOperand integer_filters(const plan::WinogradGeometry& plan);

// Parameters of the kernel: the scratch V, M and, of integers, U. Of a plan that is apart `inputs` is V of
// all batches as emit_winograd_inputs() writes it.
struct WinogradBuffers {
  int inputs = -1, products = -1, filters = -1;
};

// Emits the kernel.
void emit_winograd(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                   const ContractionBinding& binding, const WinogradBuffers& buffers);
void emit_winograd_inputs(kernel::Builder& builder, const plan::WinogradGeometry& plan,
                          const ContractionBinding& binding, int inputs);

} // namespace firn::lower
