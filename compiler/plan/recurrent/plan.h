// Decisions on recurrent layers.
#pragma once

#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// A recurrent layer with the loop over time inside.
struct RecurrentPlan {
  int rows = 0, vectors = 0;        // entries of the batch and vectors of hidden units per tile
  int64_t accumulators = 1;         // side by side at least: smaller tiles split the reduction for it
  int64_t unroll = 1;               // groups of steps of the reduction per iteration of its loop
  int64_t prefetch_distance = 0;    // bytes ahead at which weights are asked for; 0: they are not
  bool alternate_direction = false; // every other step reads the weights from their end to their start
  bool rolled_cells = false; // the cells of a tile are a loop over sums in memory, in parts of few registers
  // For several threads: so many entries of the batch, whole tiles, are an item, with its own time; 0: all.
  int64_t item_rows = 0;
  // Or items are blocks of units, and their threads wait for each other before every sweep.
  bool cooperative = false;
  Fields fields();
};

} // namespace firn::plan
