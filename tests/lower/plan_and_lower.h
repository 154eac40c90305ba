// Planning, verification and lowering of @main in one call, for tests that look at programs.
#pragma once

#include "compiler/lower/lower.h"
#include "compiler/plan/plan_function.h"
#include "compiler/plan/schedule.h"
#include "compiler/plan/verify.h"

namespace firn::test {

struct LoweringSetup {
  Machine target = {};
  Goals goals = {};
  const plan::ScheduleDatabase* schedules = nullptr;
  std::vector<plan::Explanation>* explanations = nullptr;
  const plan::KernelPlans* plans = nullptr; // null: they are made
};

inline Expected<kernel::Program> plan_and_lower(const Module& module, const LoweringSetup& setup) {
  plan::KernelPlans plans;
  if (setup.plans) {
    plans = *setup.plans;
  } else {
    auto made =
        plan::plan_function(module.main(), {setup.target, setup.goals, setup.schedules, setup.explanations});
    if (!made) return made.error();
    plans = std::move(*made);
  }
  if (Result valid = plan::verify(module.main(), plans); !valid) return valid.error();
  return lower::lower_module(module, module.main(), plans, {setup.target, setup.goals});
}

} // namespace firn::test
