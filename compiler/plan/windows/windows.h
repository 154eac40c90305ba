// Depthwise convolutions, those with narrow groups, and pooling: walks over windows of blocked channels.
#pragma once

#include "compiler/plan/options.h"
#include "compiler/plan/windows/plan.h"

namespace firn::plan {

// Channels that a walk over windows computes together: the f32 lanes of a vector, or a block of channels on
// machines without vectors.
int window_lanes(const Machine& target);

// The plan of a depthwise convolution, or of one whose groups divide a vector, and its epilogue. Nothing if
// the instruction is no such convolution, or its channels are not in blocks.
std::optional<DepthwisePlan> plan_depthwise(const Instruction& instruction, const PlanOptions& options);
// The plan of a window reduction by maximum, minimum or sum, from that reducer's identity on, likewise.
std::optional<PoolingPlan> plan_pooling(const Instruction& instruction, const PlanOptions& options);
// Completes a plan whose lanes are left to the cost model. Says why it cannot be followed; empty: it can.
std::string complete(RowPoolingPlan& plan, const Instruction& instruction, const PlanOptions& options);

// Why kernels cannot follow a plan that was written by hand; empty if they can.
std::string check(const DepthwisePlan& plan, const Instruction& instruction, const PlanOptions& options);
std::string check(const PoolingPlan& plan, const Instruction& instruction, const PlanOptions& options);

} // namespace firn::plan
