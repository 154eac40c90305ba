// Operands of attention packed into lanes.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/lowering_context.h"
#include "compiler/plan/attention.h"

namespace firn::lower {

// An operand in lanes: [different outer index][vector of columns][step][lane], columns beyond the last zero.
struct LaneOperand {
  int lanes = 1;
  int64_t steps = 1, columns = 1;
  std::vector<int64_t> outer_dims, outer_strides; // of the operand as it lies
  int64_t column_stride = 0, step_stride = 0;

  int64_t vectors() const { return (columns + lanes - 1) / lanes; }
  int64_t elements() const { return parts() * vectors() * steps * lanes; }
  // Outer dims along which the operand differs: the others share a packed part.
  std::vector<int64_t> part_dims() const;
  int64_t parts() const;
  // Where the part of the outer index `flat` begins.
  IntExpr part(const IntExpr& flat) const;
};

LaneOperand keys_in_lanes(const Attention& attention, int lanes);

// Emits a kernel body that packs an operand from `place` of buffer `source` on into buffer `out`.
void emit_pack_lanes(kernel::Builder& builder, const LaneOperand& operand, int source, int64_t place,
                     int out);

// The offset of row-major position `flat` of dims of `extents` under other strides.
IntExpr offset_at(const IntExpr& flat, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& strides);

} // namespace firn::lower
