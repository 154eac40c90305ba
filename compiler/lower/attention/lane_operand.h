// Operands of attention packed into lanes.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/element/element_loops.h"
#include "compiler/lower/lowering_context.h"
#include "compiler/plan/attention/attention.h"

namespace firn::lower {

// An operand in lanes: [different outer index][vector of columns][step][lane]. Columns beyond the last are
// zero if their number does not vary.
struct LaneOperand {
  int lanes = 1;
  IntExpr k_extent = 1, columns = 1;
  std::vector<IntExpr> outer_dims, outer_strides; // outer dims and strides of the unpacked operand
  IntExpr column_stride = 0, step_stride = 0;

  IntExpr vectors() const { return ceil_div(columns, lanes); }
  // An upper bound.
  int64_t elements() const { return (parts() * vectors() * k_extent * lanes).upper_bound(); }
  // Outer dims along which the operand differs: the others share a packed part.
  std::vector<IntExpr> part_dims() const;
  IntExpr parts() const;
  // The place where the part of the outer index `flat` begins.
  IntExpr part(const IntExpr& flat) const;
};

LaneOperand keys_in_lanes(const Attention& attention, int lanes);

// Emits a kernel body that packs an operand from `place` of buffer `source` on into buffer `out`. If the
// number of columns varies, lanes behind the last one keep their contents.
void emit_pack_lanes(kernel::Builder& builder, const LaneOperand& operand, int source, const IntExpr& place,
                     int out);

// The offset of row-major position `flat` in dims of `extents` under other strides.
IntExpr offset_at(const IntExpr& flat, const std::vector<IntExpr>& extents,
                  const std::vector<IntExpr>& strides);

} // namespace firn::lower
