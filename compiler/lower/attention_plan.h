// How the attention kernel walks its operands: tiles of rows, blocks of keys, and operands packed into lanes.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/element_loops.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

struct AttentionSchedule {
  int lanes, vectors;   // of a column group
  int rows;             // of the larger row tiles
  int64_t large, small; // row tiles of `rows` rows, and of one row less
  int steps;            // of a product per iteration
  int64_t block;        // keys whose scores are there at a time
  bool packs_keys;      // copies them into lanes first
  bool packs_values;
  // Keys that whole vectors of weights and whole iterations of a product cover: both are powers of two.
  int key_step() const { return lanes > steps ? lanes : steps; }
};

// Register tiles as choose_tiling weighs them, but of rows that suit both products.
AttentionSchedule choose_schedule(const Attention& attention, const TargetMachine& target);

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
void emit_pack(kernel::Builder& builder, const LaneOperand& operand, int source, int64_t place, int out);

// The offset of row-major position `flat` of dims of `extents` under other strides.
IntExpr offset_at(const IntExpr& flat, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& strides);

} // namespace firn::lower
