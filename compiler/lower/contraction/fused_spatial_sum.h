// Fused spatial sums: the kernel of a convolution leaves sums of its result over all positions, per channel,
// so that the result need not be read again for them. Every tile stores the sum of its vectors, once; a small
// kernel adds the sums of all tiles.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

// The sums of tiles as a kernel stores them: [feature map, vector of channels, tile, lane] of f32.
struct TileTotals {
  int buffer = -1; // number of the kernel's parameter
  int64_t vectors = 1, tiles = 1;
  int lanes = 1;
  bool replace_result = false; // nothing else reads the result, so it need not be stored

  // Stores the sum of tile `tile` of vector `vector` of the channels.
  void store(kernel::Builder& builder, const IntExpr& feature_map, const IntExpr& vector, const IntExpr& tile,
             kernel::Register total) const;
};

// The sums that one instruction's kernel has to leave, and those that it left.
class FusedSpatialSum {
public:
  // `summed`: images, channels, positions. `keeps_result`: other instructions read the value too.
  // `accumulators`: partial sums of the tiles' sums, a power of two.
  FusedSpatialSum(const Type& summed, bool keeps_result, int lanes, int64_t accumulators);

  // Makes the kernel store the sums of so many tiles. Call it once, before any scratch is made.
  TileTotals bind(KernelMaker& maker, int64_t tiles);
  // Emits the kernel that makes the result of `reduction`, a reduce of `summed` or a fusion around it, from
  // the sums that a kernel has stored.
  void emit_totals(LoweringContext& context, const Instruction& reduction, Value summed) const;

private:
  kernel::Register add_tiles(kernel::Builder& builder, int buffer, const IntExpr& first) const;
  int64_t elements() const { return maps_ * vectors_ * tiles_ * lanes_; }

  int lanes_;
  int64_t accumulators_;
  int64_t maps_, channels_, vectors_; // vectors of channels
  bool keeps_result_;
  int64_t tiles_ = 0;
  BufferSlice partial_; // sums of tiles
};

} // namespace firn::lower
