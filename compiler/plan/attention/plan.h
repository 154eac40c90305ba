// Decisions on attention in one kernel.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// dot(softmax(f(dot(q, k))), v) as one kernel: tiles of query rows, blocks of keys.
struct AttentionPlan {
  // Both dots multiply in f32, or in bf16 by tiles that take a block of rows (bf16_attention.h).
  MacInstruction mac;
  int rows = 0, vectors = 0; // rows and vectors of a register tile; no rows: the cost model chooses
  int unroll = 1;            // steps of k per iteration
  int64_t block = 0;         // keys whose scores are there at a time
  int64_t accumulators = 4;  // accumulators for a row's maximum and sum of weights
  bool packs_keys = false;   // copies them into lanes first
  bool packs_values = false;
  bool skips_hidden = false; // keys that a constant mask hides from all rows of a tile are not multiplied
  // Weights are powers of two relative to a whole one near a row's largest; else that one's score is
  // subtracted beforehand.
  bool fused_exponents = false;
  Fields fields();
};

} // namespace firn::plan
