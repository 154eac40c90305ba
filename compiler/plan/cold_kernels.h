// Of an object for several CPUs, the instructions that take so little time that the code of the least able
// CPU serves all of them.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/schedule.h"
#include "compiler/target/cpu_list.h"

#include <span>

namespace firn::plan {

// Has all of `plans`, of the CPUs in their order, plan cold instructions as those of the last CPU do, and
// says so (KernelPlans::is_for_least). In each CPU's code they take a small part of the network's predicted
// time, one by one and all together. `explanations` are those of the first CPU.
void share_cold_kernels(const Module& module, std::span<const NamedTarget> cpus, std::span<KernelPlans> plans,
                        std::vector<Explanation>* explanations);

} // namespace firn::plan
