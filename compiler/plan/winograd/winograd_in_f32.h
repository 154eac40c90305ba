// Convolutions that stay in f32 while others are multiplied in bf16: Winograd's algorithm, which keeps the
// precision of f32, computes them in less time than pairs of bf16 would take.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"

#include <set>

namespace firn::plan {

// Finds them among the region's convolutions of f32 by constant filters, before layouts are chosen.
std::set<const Instruction*> faster_by_winograd(const Region& region, const PlanOptions& options);

} // namespace firn::plan
