// Code for values of dims that vary: beside the program for all values one for each combination that is
// asked for, over the same weights, inputs, outputs and states, which a run with these values takes.
#pragma once

#include "compiler/driver/stages.h"

namespace firn::driver {

// Adds the programs of options.specializations to the compilation, for each of its CPUs. A usage error names
// a dim that has no values given, or a value that is none of them.
Result add_specializations(const CompileOptions& options, Compilation& compilation, Stages& stages);

} // namespace firn::driver
