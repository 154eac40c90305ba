// Plans of dots and convolutions by register tiles.
#pragma once

#include "compiler/plan/contraction/convolution.h"
#include "compiler/plan/contraction/dot.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/contraction/planar.h"
#include "compiler/plan/contraction/polyphase.h"
#include "compiler/plan/planning_context.h"
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

// Completes a plan whose tile is left to the cost model. Says why a plan cannot be followed; empty: it can.
std::string complete(ContractionPlan& plan, const Instruction& instruction, const PlanningContext& context);

} // namespace firn::plan
