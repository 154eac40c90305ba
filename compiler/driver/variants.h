// Code for several CPUs in one object: one graph in the layouts of the most able CPU, and for each of the
// others a program of its own over the same weights, inputs, outputs and states.
//
// Weights are packed for the vectors of the most able CPU. On the others a vector of columns takes several
// registers, and a tile may take a part of a panel.
#pragma once

#include "compiler/driver/make_program.h"

namespace firn::driver {

// The CPUs of a compilation: that of -mcpu, or those of --multiversion, the most able first.
Expected<std::vector<NamedTarget>> targets_of(const CompileOptions& options);

// The plans of an entry function for each CPU, in the order of compilation.cpus.
Expected<std::vector<plan::KernelPlans>> plan_entry(const CompileOptions& options, Compilation& compilation,
                                                    const Function& entry);

// The source of an entry function's program, with constants of its own, for CPU number `cpu` of `plans`.
ProgramSource source_of(const CompileOptions& options, const Compilation& compilation, const Function& entry,
                        const std::vector<plan::KernelPlans>& plans, size_t cpu);
// The source of the program of @main for a CPU, by compilation.plans.
ProgramSource main_source(const CompileOptions& options, const Compilation& compilation, size_t cpu);
// That source for a program beside compilation.program, which is made already: it shares the constants of
// that one, and has inputs, outputs and states at its offsets.
ProgramSource further_source(const CompileOptions& options, Compilation& compilation, size_t cpu);

// Adds the programs for the CPUs behind the first to compilation.variants.
Result add_variants(const CompileOptions& options, Compilation& compilation, Stages& stages);

// The number of the CPU whose code run, verify and bench take: that of --variant, else the first that this
// machine can follow.
Expected<size_t> variant_to_run(const CompileOptions& options);

} // namespace firn::driver
