// The functions that objects may call, as this process has them.
#pragma once

#include "compiler/load/loaded_object.h"

namespace firn::driver {

// The memory functions and the runtime's part for strings.
load::SymbolTable runtime_symbols();

} // namespace firn::driver
