// Resampling of images along their dims: what resize operators with weights amount to once their coordinates
// are known.
#pragma once

#include "compiler/graph/builder.h"

#include <optional>
#include <vector>

namespace firn {

// One dim: result element i is the sum over t of weights[t, i] * x[indices[t, i]].
struct ResampledDim {
  int dim = 0;
  LiteralRef indices; // i32 [taps, extent of the result], in [0, extent of x)
  LiteralRef weights; // in x's dtype, [taps, extent of the result]

  int64_t taps() const { return indices->dims()[0]; }
  int64_t extent() const { return indices->dims()[1]; }
};

// The composite `resample` {dims}: x, then indices and weights of every dim. The body goes dim by dim, in the
// order given: gathers and weighted sums.
Value make_resample(GraphBuilder& builder, Value x, const std::vector<ResampledDim>& dims);

// The dims of a composite `resample` in ascending order: f32 images of which the batch alone may vary, in
// plain layouts or with blocks of another dim, tables that are constants. Nothing for any other instruction.
std::optional<std::vector<ResampledDim>> read_resample(const Instruction& instruction);

// Makes `x`, which has another layout, the operand of the composite, and gives result and body its layout.
void set_resample_layout(Instruction& resample, Value x, const Layout& layout);

} // namespace firn
