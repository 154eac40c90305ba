// Chains [convolution ->] depthwise convolution [-> convolution] of one fusion, as one kernel.
#pragma once

#include "compiler/plan/contraction_plan.h"

namespace firn::plan {

// The members that are there; either of `expand` and `project` is.
struct DepthwiseChain {
  const Instruction *expand = nullptr, *depthwise = nullptr, *project = nullptr;
};

// The chain of a fusion that form-depthwise-chains made; nothing if its members are no such chain, or if
// their kernels cannot walk lines of the image.
std::optional<DepthwiseChain> find_depthwise_chain(const Instruction& fusion, const PlanOptions& options);

std::string check(const DepthwiseChainPlan& plan, const Instruction& fusion, const PlanOptions& options);

} // namespace firn::plan
