// Operands of attention packed for tile matrices: bf16, neighbouring steps in pairs.
#pragma once

#include "compiler/lower/attention/lane_operand.h"

namespace firn::lower {

// Emits a kernel body that packs an operand of f32, from `place` of buffer `source` on, into buffer `out`,
// where a part is [vector of columns][pair of steps][lane][2] of bf16. `k_extent`: the steps that exist; the
// others, and columns beyond the last, are zero. Steps or columns lie side by side, and their numbers do not
// vary.
void emit_pack_pairs(kernel::Builder& builder, const LaneOperand& operand, int64_t k_extent, int source,
                     const IntExpr& place, int out);

// Rounds f32 to bf16; subnormal numbers may become zeros, as tile matrices take them.
kernel::Register narrowed(kernel::Builder& builder, kernel::Register vector);
// Loads f32 from a buffer that has `count` elements there, maybe less than a vector; the other lanes are
// zeros.
kernel::Register load_some(kernel::Builder& builder, int buffer, const IntExpr& place, int64_t count,
                           int lanes);

} // namespace firn::lower
