// Decisions on reductions along rows by blocks of threads.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// Reductions along a row, each of which a block of threads computes together, and the code behind them: one
// reduction with elementwise code around it, or a composite such as softmax and layer norm.
struct BlockRowsPlan {
  int threads = 0; // a block's; 0: as many as rows of that length employ
  Fields fields();
};

// The reductions along rows of an instruction, and what is behind them.
struct BlockRows {
  std::vector<int64_t> dims;     // dims of an operand that make a row, ascending
  std::vector<Value> reductions; // over them, in order, each of one value by a simple reducer
  Type operand;                  // the reductions take it
  bool keeps_rows = false;       // results have an element for each of the row; else one for the row
};
// The form of a reduction, a fusion or a composite; nothing: it has no such form.
std::optional<BlockRows> find_block_rows(const Instruction& instruction);

} // namespace firn::plan
