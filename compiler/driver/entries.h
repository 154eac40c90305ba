// Objects with several entry functions: @main and others of the module run over one block of weights, in one
// arena, and keep each other's states.
#pragma once

#include "compiler/driver/stages.h"

namespace firn::driver {

// Gives parameters their places in their block, and what entry functions have in common its places in their
// arena: states of one name are the same one. A model error names a tensor that has two types.
Result place_shared(const CompileOptions& options, Compilation& compilation);

// Adds the programs of the functions beside @main, for every CPU. Their weights join those of
// compilation.program, whose arena becomes the largest of all unless the module has parameters.
Result add_entries(const CompileOptions& options, Compilation& compilation, Stages& stages);

} // namespace firn::driver
