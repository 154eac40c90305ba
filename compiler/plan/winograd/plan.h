// Decisions on convolutions by Winograd's algorithm.
#pragma once

#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/kernel_plan.h"

#include <memory>

namespace firn::plan {

struct ComputedConvolution;
struct WinogradGeometry;

constexpr int kLiveVectors = 20; // vectors of 32 registers, beside those of the transform itself

// A convolution by Winograd's algorithm (plan/winograd/winograd.h).
struct WinogradPlan {
  int outputs_high = 0, outputs_wide = 0; // outputs of one transform
  TileShape tile{0};                      // tile of the products; no rows: the cost model chooses
  int64_t batch = 0;                      // tiles of the image per batch
  bool separate_transform =
      false; // inputs are transformed by a kernel of their own; of products, threads share filters
  bool rolled_epilogue = false; // see ContractionPlan
  // Vectors of the points of a tile that the transform of inputs has in registers at a time, if whole tiles
  // fit the registers.
  int live_vectors = kLiveVectors;
  // Derived data, set by complete(): the convolution that is computed, and how.
  std::shared_ptr<const ComputedConvolution> computed = nullptr;
  std::shared_ptr<const WinogradGeometry> geometry = nullptr;
  Fields fields();
};

} // namespace firn::plan
