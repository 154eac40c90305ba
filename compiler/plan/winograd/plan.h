// Decisions on convolutions by Winograd's algorithm.
#pragma once

#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::plan {

// A convolution by Winograd's algorithm (plan/winograd/winograd.h).
struct WinogradPlan {
  int outputs_high = 0, outputs_wide = 0; // outputs of one transform
  TileShape tile{0};                      // tile of the products; no rows: the cost model chooses
  int64_t batch = 0;                      // tiles of the image per batch
  bool separate_transform =
      false; // inputs are transformed by a kernel of their own; of products, threads share filters
  bool rolled_epilogue = false; // see ContractionPlan
  Fields fields();
};

} // namespace firn::plan
