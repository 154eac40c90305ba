// Objects with several entry functions: @main and others of the module run over one block of weights, in one
// arena, and keep each other's states.
#pragma once

#include "compiler/driver/stages.h"

namespace firn::driver {

// Gives the states of all entry functions their places, those of one name the same one, if there are several
// functions. A model error names a state that has two types.
Result place_states(Compilation& compilation);

// Adds the programs of the functions beside @main, for every CPU. Their weights join those of
// compilation.program, whose arena becomes the largest of all.
Result add_entries(const CompileOptions& options, Compilation& compilation, Stages& stages);

} // namespace firn::driver
