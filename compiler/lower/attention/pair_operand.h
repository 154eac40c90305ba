// Operands of attention packed for tile matrices: bf16, neighbouring steps in pairs.
#pragma once

#include "compiler/lower/attention/lane_operand.h"

namespace firn::lower {

// Emits a kernel body that packs an operand, whose part is [vector of columns][pair of steps][lane][2] of
// bf16, from `place` of buffer `source` on into buffer `out`. `steps` of the operand's are there; the others,
// and columns beyond the last, are zero. Steps or columns lie side by side and none varies in number.
void emit_pack_pairs(kernel::Builder& builder, const LaneOperand& operand, int64_t k_extent, int source,
                     const IntExpr& place, int out);

// Bf16 of f32, subnormal numbers perhaps as zeros: so tile matrices take them.
kernel::Register narrowed(kernel::Builder& builder, kernel::Register vector);
// Vectors of f32 from a buffer of which `count` elements are there, less than a vector perhaps; zeros behind.
kernel::Register load_some(kernel::Builder& builder, int buffer, const IntExpr& place, int64_t count,
                           int lanes);

} // namespace firn::lower
