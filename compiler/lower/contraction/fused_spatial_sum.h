// Fused spatial sums: what the kernel of a convolution leaves of the sums of its result over all positions,
// per channel, so that nobody reads the result again for them. Every tile stores the sum of its vectors,
// once; a small kernel adds those of all tiles.
#pragma once

#include "compiler/lower/lowering_context.h"

namespace firn::lower {

class FusedSpatialSum {
public:
  // Of a value of that type: images, channels, positions. `keeps_result`: others read the value too.
  FusedSpatialSum(const Type& summed, bool keeps_result, int lanes);

  // Says that the kernel will store the sum of every tile. Before any scratch.
  void take(KernelMaker& maker, int64_t tiles);
  // Whether the value need not be stored.
  bool replaces_result() const { return !keeps_result_; }
  // Stores the sum of tile `tile` of vector `vector` of the channels.
  void store(kernel::Builder& builder, const IntExpr& feature_map, const IntExpr& vector, const IntExpr& tile,
             kernel::Register total) const;
  // The kernel that makes the result of `reduction`, a reduce of `summed` or a fusion around it, of the sums.
  void emit_totals(LoweringContext& context, const Instruction& reduction, Value summed) const;

private:
  kernel::Register add_tiles(kernel::Builder& builder, int buffer, const IntExpr& first) const;
  int64_t elements() const { return maps_ * vectors_ * tiles_ * lanes_; }

  int lanes_;
  int64_t maps_, channels_, vectors_; // vectors of channels
  bool keeps_result_;
  int64_t tiles_ = 0;
  BufferSlice partial_; // [image, vector, tile, lane]
  int buffer_ = -1;     // that, in the kernel at hand
};

} // namespace firn::lower
