// Decisions on dots and convolutions by blocks of threads.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/roots.h"

namespace firn::plan {

// A dot or convolution as one product of matrices: each block of threads has a tile of block_m x block_n
// results, and holds the operands of block_k steps at a time in shared memory; each thread has the
// accumulators of thread_m x thread_n results. The code behind it in a fusion is computed from these.
struct BlockContractionPlan {
  int block_m = 0, block_n = 0, block_k = 16; // block_m 0: the cost model chooses, fields behind it too
  int thread_m = 4, thread_n = 4;
  int threads() const { return block_m / thread_m * (block_n / thread_n); }
  Fields fields();
};

// The matrices of a dot or convolution: for each of `batch`, m x k times k x n. A convolution's groups are
// its batch, its filters are rows of the lhs, and columns of the rhs are windows of the input.
struct BlockProduct {
  // The parts of which each index is made, outermost first.
  std::vector<IntExpr> batch, m, n, k;
  // Whether the last part of k is the last dim of the operand.
  bool lhs_k_inner = true, rhs_k_inner = false;
  static IntExpr product(const std::vector<IntExpr>& extents);
};
// The form of a contraction that blocks of threads take; nothing: they do not, as input dilation or operands
// in blocks have no such form.
std::optional<BlockProduct> find_block_product(const KernelRoot& root);

} // namespace firn::plan
