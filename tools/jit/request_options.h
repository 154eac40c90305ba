// The options of a request, which are those of `firn compile`.
#pragma once

#include "compiler/driver/compile.h"
#include "tools/jit/compiler.h"

namespace firn::library {

// A usage error names a word that cannot be read, or an option that makes no sense in a process.
Expected<driver::CompileOptions> options_of(const Request& request);

} // namespace firn::library
