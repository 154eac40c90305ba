// Keys that an attention's mask hides from whole tiles of rows (plan/attention/attention_mask.h): their
// products are not computed.
//
// Results stay what they are without that: a score that the mask replaces does not depend on its product, and
// hidden values are left out only if their weights have come out as zero, with zero times them added instead,
// so that infinities and NaN among them still show.
#pragma once

#include "compiler/lower/attention/lane_operand.h"

namespace firn::lower {

class MaskSkipping {
public:
  // `shown_keys`: of `keys`, the number that each tile sees. Construct it before any scratch of the kernel.
  MaskSkipping(KernelMaker& maker, const plan::AttentionTiling& schedule, int64_t keys,
               const std::vector<int32_t>& shown_keys);

  void begin_tile(const IntExpr& tile);
  // The number of groups that hold keys which the tile's rows see, among the first `groups` groups of `size`
  // keys of the block that begins at key `first`: shown groups come first.
  IntExpr shown_groups(const IntExpr& first, int64_t size, int64_t groups) const;
  // The number of the block's first `keys` keys, a multiple of the key step, that have to be multiplied with
  // values: all unless the weights of the hidden ones, rows of `stride` in `weights`, are zero.
  IntExpr find_reach(const IntExpr& first, int64_t keys, int rows, int weights, int64_t stride) const;

private:
  kernel::Builder& b_;
  int lanes_;
  int64_t step_; // keys that products take at a time
  int64_t keys_;
  int table_; // parameter: shown keys per tile
  IntExpr shown_;
};

} // namespace firn::lower
