// Graph IR to kernel IR: every instruction of an entry function becomes a kernel call, a view of another
// buffer, or nothing.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/kernel/kernel.h"
#include "compiler/plan/kernel_plan.h"
#include "compiler/support/goals.h"
#include "compiler/target/machine.h"

#include <map>

namespace firn::lower {

struct LoweringOptions {
  const Machine& target;
  const Goals& goals = kDefaultGoals;
  // The CPU that plans with KernelPlans::is_for_baseline were made for; null: there is only one CPU.
  const Machine* baseline = nullptr;
  // First values of states by parameter name; others start from zeros.
  const std::map<std::string, LiteralRef>* initial_states = nullptr;
};

// The program that computes `entry`, a function of the module, by complete plans that plan::verify has let
// through.
Expected<kernel::Program> lower_module(const Module& module, const Function& entry,
                                       const plan::KernelPlans& plans, const LoweringOptions& options);

} // namespace firn::lower
