// Plans as texts and back.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"

namespace firn::test {

// Plans the module, writes every plan down beside its instruction, and plans it again: by what stands there,
// each instruction is to have an equal plan. The module is left as it was. False if it cannot be planned.
bool expect_plans_read_back(const Module& module, const plan::PlanOptions& options);

} // namespace firn::test
