// Code for several CPUs in one object: one graph in the layouts of the most able CPU, and for each of the
// others a program of its own over the same weights, inputs, outputs and states.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// The CPUs of a compilation: that of -mcpu, or those of --multiversion, the most able first.
Expected<std::vector<NamedTarget>> targets_of(const CompileOptions& options);

// The program for one of the CPUs, from a module in which the plans of compilation.target stand. It reads the
// weights of compilation.program, which gets those that it does not share; the arena is as large as the
// largest program's.
Result add_variant(const CompileOptions& options, const lower::LoweringOptions& lowering, NamedTarget cpu,
                   Compilation& compilation);

// The number of the CPU whose code run, verify and bench take: that of --variant, else the first that this
// machine can follow.
Expected<size_t> variant_to_run(const CompileOptions& options);

} // namespace firn::driver
