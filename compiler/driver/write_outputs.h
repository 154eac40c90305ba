// The files of a compilation: all of them are put into place, or none.
#pragma once

#include "compiler/driver/compile.h"

namespace firn::driver {

// Generates code as options.emit wants and writes what belongs to it; fills compilation.object and .files.
Result write_outputs(const CompileOptions& options, Compilation& compilation);

} // namespace firn::driver
