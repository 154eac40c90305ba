// Copies of an image in which channels lie side by side and padding is there: what tile matrices multiply
// where the image itself has no rows for them, and tiles of registers where windows are long
// (ConvolutionGeometry::over()).
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/convolution.h"

namespace firn::lower {

// Emits the kernel's body from buffer `source`, the input of `from`, to buffer `out`, that of `to`. Rows are
// padded in the dims that `to` does not pad, which may be one: those of lines.
void emit_packed_rows(kernel::Builder& builder, const plan::ConvolutionGeometry& from,
                      const plan::ConvolutionGeometry& to, int source, int out);
void emit_packed_windows(kernel::Builder& builder, const plan::ConvolutionGeometry& from,
                         const plan::ConvolutionGeometry& to, int source, int out);

} // namespace firn::lower
