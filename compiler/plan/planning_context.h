// The machine, the goals and what other decisions fix, as an instruction is planned.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::plan {

struct TileShape;

struct PlanningContext {
  const PlanOptions& options;
  int64_t model_weight_bytes = 0;
  bool by_rows = false; // in a depthwise chain, which has the loop over lines of the image
  // The plan that decides how constants are packed; null: the one at hand (PlanOptions::packed_as).
  const KernelPlan* packed_as = nullptr;
  // In a depthwise chain, the tile of the members that multiply by tile matrices; null: this member does not.
  const TileShape* chain_tile = nullptr;
  // The fields that a request gave for the plan that is being completed; null: none of it was written.
  const GivenFields* given = nullptr;
  bool is_given(const char* word) const { return given && given->words.count(word) != 0; }
  // Whether a field that follows from a tile has the value that the plan at hand has.
  bool decides(const char* word) const { return given && given->decides(word); }
};

} // namespace firn::plan
