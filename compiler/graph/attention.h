// Attention as it stands in the graph: dot(softmax(f(dot(q, k))), v), f elementwise. The pass that makes one
// kernel of it and the emitter of that kernel read it through this description.
#pragma once

#include "compiler/graph/strided_view.h"

#include <optional>
#include <vector>

namespace firn {

struct Attention {
  Instruction* scores = nullptr;  // dot(q, k): [outer..., rows, keys]
  Instruction* softmax = nullptr; // over keys
  Instruction* values = nullptr;  // dot(weights, v)
  Instruction* last = nullptr;    // `values`, or a transpose of it

  // Both dots walk the same outer dims in row-major order, though they may cut them differently. There is a
  // key at least.
  IntExpr outer = 1, rows = 1, keys = 1;
  int64_t depth = 1, value_depth = 1;
  StridedView q, k, v;

  // Strides, in elements, of the outer dims of `scores` and of the weights (0: the operand does not change),
  // and of the others.
  std::vector<IntExpr> score_dims, q_outer, k_outer;
  std::vector<IntExpr> weight_dims, v_outer, result_outer;
  IntExpr q_row = 0, q_depth = 0, k_key = 0, k_depth = 0, v_key = 0, v_depth = 0, result_row = 0,
          result_depth = 0;
  // From `scores` to `softmax`: the ops that compute its operand from the dot.
  std::vector<Instruction*> path;
};

// The attention that ends in `last`. Nothing if there is none, if its parts have users outside, or if it is
// not of f32 in plain layouts. Batches, rows and keys may vary.
std::optional<Attention> match_attention(Instruction& last);

} // namespace firn
