// Instructions that take so little time that code for their speed is not worth its bytes. In an object for
// several CPUs, the code of the least able CPU serves all of them for such instructions.
#pragma once

#include "compiler/plan/kernel_plan.h"
#include "compiler/plan/schedule.h"
#include "compiler/target/cpu_list.h"

#include <functional>
#include <span>

namespace firn::plan {

// Has all of `plans`, one per CPU in their order, plan cold instructions as those of the last CPU do, and
// says so (KernelPlans::is_for_baseline). Instructions with a plan that a person wrote are excepted. In each
// CPU's code cold ones take a small part of the network's predicted time, one by one and all together.
// `explanations` are those of the first CPU.
void share_cold_kernels(const Function& function, std::span<const NamedTarget> cpus,
                        std::span<KernelPlans> plans, std::vector<Explanation>* explanations);

// An instruction whose plans are for the least able CPU although kernels of others depend on it; null: none.
const Instruction* find_unsharable(const Function& function, std::span<const KernelPlans> plans);

// Has loops over elements that take next to nothing of the network's predicted time repeat none of their
// code. Plans of instructions that `is_fixed` names stay as they are.
void shorten_cold_loops(const Region& body, const Machine& target, KernelPlans& plans,
                        const std::function<bool(const Instruction&)>& is_fixed);

} // namespace firn::plan
