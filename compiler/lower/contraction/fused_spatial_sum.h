// Fused spatial sums: the kernel of a convolution leaves sums of its result over all positions, per channel,
// so that the result need not be read again for them. Every tile stores the sum of its vectors, once; a small
// kernel adds the sums of all tiles.
#pragma once

#include "compiler/lower/lowering_context.h"

namespace firn::lower {

class FusedSpatialSum {
public:
  // `summed`: images, channels, positions. `keeps_result`: other instructions read the value too.
  FusedSpatialSum(const Type& summed, bool keeps_result, int lanes);

  // Announces that the kernel will store the sum of every tile. Call it before any scratch is made.
  void take(KernelMaker& maker, int64_t tiles);
  // Whether the value need not be stored.
  bool replaces_result() const { return !keeps_result_; }
  // Stores the sum of tile `tile` of vector `vector` of the channels.
  void store(kernel::Builder& builder, const IntExpr& feature_map, const IntExpr& vector, const IntExpr& tile,
             kernel::Register total) const;
  // Emits the kernel that makes the result of `reduction`, a reduce of `summed` or a fusion around it, from
  // the sums.
  void emit_totals(LoweringContext& context, const Instruction& reduction, Value summed) const;

private:
  kernel::Register add_tiles(kernel::Builder& builder, int buffer, const IntExpr& first) const;
  int64_t elements() const { return maps_ * vectors_ * tiles_ * lanes_; }

  int lanes_;
  int64_t maps_, channels_, vectors_; // vectors of channels
  bool keeps_result_;
  int64_t tiles_ = 0;
  BufferSlice partial_; // [image, vector, tile, lane]
  int buffer_ = -1;     // number of `partial_` in the current kernel
};

} // namespace firn::lower
