// Plans of dots and convolutions by register tiles.
#pragma once

#include "compiler/plan/convolution.h"
#include "compiler/plan/dot.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"
#include "compiler/plan/planar.h"
#include "compiler/plan/polyphase.h"
#include "compiler/plan/roots.h"

namespace firn::plan {

// The convolution that register tiles compute: a root's own, or that of all phases of a transposed one.
struct ComputedConvolution {
  std::shared_ptr<const PolyphaseConvolution> polyphase; // null: the root's own
  const Instruction* convolution = nullptr;
  Value filter;
  Type result; // the result's type as laid out

  // `result`: the type of the surrounding fusion's result.
  static ComputedConvolution of(const KernelRoot& root, const Type& result, int lanes);
  std::optional<ConvolutionGeometry> geometry(const MacInstruction& mac, bool by_rows) const;
};

struct ContractionContext {
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

// How an instruction is computed as a contraction; nothing if it is none, or one that tiles do not cover.
std::optional<ContractionPlan> plan_contraction(const Instruction& instruction,
                                                const ContractionContext& context);
// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(ContractionPlan& plan, const Instruction& instruction,
                     const ContractionContext& context);

} // namespace firn::plan
