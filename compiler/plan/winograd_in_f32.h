// Which convolutions stay in f32 where others are multiplied in bf16: those that Winograd's algorithm, which
// keeps the digits of f32, computes in less time than pairs of bf16 take.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/options.h"

#include <set>

namespace firn::plan {

// Of the region's convolutions of f32 by constant filters, before layouts are chosen.
std::set<const Instruction*> faster_by_winograd(const Region& region, const PlanOptions& options);

} // namespace firn::plan
