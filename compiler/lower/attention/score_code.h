// The code that an attention's fusion applies to the products of queries and keys before softmax: scales,
// masks, caps.
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/element/element_emitter.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

// The value outside the fusion that one of its views reads.
Value operand_of(const Instruction& fusion, const StridedView& view);

class ScoreCode {
public:
  // `lanes`: keys of a vector. Construct it before any scratch of the kernel.
  ScoreCode(KernelMaker& maker, const Instruction& fusion, const Attention& attention, int lanes);

  // The positive factor of products if nothing else happens before softmax; else 1.
  double scale() const { return scale_; }
  // Whether scores are the products themselves, apart from the scale.
  bool is_product() const { return a_.path.empty() || scale_ != 1; }
  // Scores of the keys from `key` on, `valid` of which exist, for a row of outer index `outer`: computed from
  // `product`, without the scale.
  kernel::Register score_of(const IntExpr& outer, const IntExpr& row, const IntExpr& key, int valid,
                            kernel::Register product);

private:
  bool computes_scores(const Instruction& instruction) const;
  bool is_mask_code(const Instruction& instruction) const;
  double find_scale() const;

  kernel::Builder& b_;
  const Attention& a_;
  int lanes_;
  double scale_;
  RegionLeaves leaves_;
};

} // namespace firn::lower
