// Copies of an image in which channels lie side by side and padding is included. Tile matrices read them if
// the image itself has no rows for them, register tiles if windows are long (ConvolutionGeometry::over()).
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/contraction/convolution.h"

namespace firn::lower {

// Emits the kernel's body from buffer `source`, the input of `from`, to buffer `out`, the input of `to`. Rows
// are padded in the dims that `to` does not pad, which may be only the dim along lines.
void emit_packed_rows(kernel::Builder& builder, const plan::ConvolutionGeometry& from,
                      const plan::ConvolutionGeometry& to, int source, int out);
void emit_packed_windows(kernel::Builder& builder, const plan::ConvolutionGeometry& from,
                         const plan::ConvolutionGeometry& to, int source, int out);

} // namespace firn::lower
