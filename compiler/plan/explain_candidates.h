// All candidates of kernels, for --explain=all.
#pragma once

#include "compiler/plan/options.h"
#include "compiler/plan/schedule.h"

namespace firn::plan {

// Adds to every explanation the candidates of its instruction, `max` of each algorithm at most, beside those
// that it has. `plans` are those that were chosen with `options`.
void add_candidates(const KernelPlans& plans, const PlanOptions& options, size_t max,
                    std::vector<Explanation>& explanations);

} // namespace firn::plan
