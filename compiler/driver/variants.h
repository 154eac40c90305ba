// Code for several CPUs in one object: one graph in the layouts of the most able CPU, and for each of the
// others a program of its own over the same weights, inputs, outputs and states.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/plan/kernel_plan.h"

namespace firn::driver {

// The CPUs of a compilation: that of -mcpu, or those of --multiversion, the most able first.
Expected<std::vector<NamedTarget>> targets_of(const CompileOptions& options);

// The plans of the module for each CPU, by which all read the constants in the form that the first wants.
Expected<std::vector<plan::KernelPlans>> plan_cpus(const Compilation& compilation,
                                                   const lower::LoweringOptions& lowering,
                                                   const std::vector<NamedTarget>& cpus);

// The plans of the module as it stands for one CPU; `packed_as`: for another, in the forms of whose plans
// constants are read, or null. `explanations` may be null.
Expected<plan::KernelPlans> plan_for(const Compilation& compilation, const lower::LoweringOptions& lowering,
                                     const TargetInfo& target, const plan::KernelPlans* packed_as,
                                     std::vector<plan::Explanation>* explanations);

// One more program of the compilation's module, as it stands and by these plans. It reads the weights of
// compilation.program, which gets those that it does not share, and has inputs, outputs and states where that
// one has them; the arena is as large as the largest program's. Names of its kernels end with `suffix`.
struct FurtherProgram {
  kernel::Program program;
  int64_t own_weight_bytes = 0; // of constants that lie in a form of its own
};
Expected<FurtherProgram> lower_further(const CompileOptions& options, const lower::LoweringOptions& lowering,
                                       const TargetInfo& target, const plan::KernelPlans& plans,
                                       std::string suffix, Compilation& compilation);

// The program for one of the CPUs, by its plans.
Result add_variant(const CompileOptions& options, const lower::LoweringOptions& lowering, NamedTarget cpu,
                   const plan::KernelPlans& plans, Compilation& compilation);

// The number of the CPU whose code run, verify and bench take: that of --variant, else the first that this
// machine can follow.
Expected<size_t> variant_to_run(const CompileOptions& options);

} // namespace firn::driver
