// The convolution that kernels compute for an instruction.
#pragma once

#include "compiler/plan/contraction/convolution.h"
#include "compiler/plan/contraction/polyphase.h"
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

// The convolution of a plan and its geometry, that over the input itself if the plan makes a copy.
struct PlannedConvolution {
  ComputedConvolution computed;
  ConvolutionGeometry geometry;
};

} // namespace firn::plan
