// The plans of a function for several CPUs whose code lies in one object.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/options.h"
#include "compiler/target/cpu_list.h"

#include <span>
#include <vector>

namespace firn::plan {

struct CpusOptions {
  std::span<const NamedTarget> cpus; // the most able first
  const Goals& goals = kDefaultGoals;
  const ScheduleDatabase* schedules = nullptr;
  std::vector<Explanation>* explanations = nullptr; // are the first CPU's; may be null
};

// Plans by CPU, by which all read constants in the form that the first wants. Instructions that take next to
// none of the time have one code for all. Errors are those of plan_function(), and one that names the
// instruction whose text asks for one code where kernels of several CPUs have to differ.
Expected<std::vector<KernelPlans>> plan_cpus(const Function& function, const CpusOptions& options);

} // namespace firn::plan
