// Decisions on walks down decision trees.
#pragma once

#include "compiler/plan/kernel_plan.h"

#include <memory>

namespace firn::plan {

struct PackedTrees;

// Walks down decision trees: tiles of so many rows and trees side by side, rows in blocks that are shared
// among threads. Rows that are left have as many trees side by side as a tile has walks.
struct TreesPlan {
  int64_t rows = 0, trees = 1; // rows and trees of a tile; no rows: the cost model chooses
  int64_t block = 1;
  // Walks of trees deeper than that end early: all walks of a tile are looked at every few steps.
  int64_t unchecked_steps = 8, steps_per_check = 4;
  // Results that a leaf adds to at a time, where leaves have rows of values; 0: the cost model chooses.
  int64_t lanes = 0;
  // Entries without leaves (packed_trees.h), and one walk after the other.
  bool packed = false;
  std::shared_ptr<const PackedTrees> entries = nullptr; // derived data, set by complete() if they are packed
  Fields fields();
};

} // namespace firn::plan
