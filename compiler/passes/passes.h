// Declarations of all pass functions, from passes.def. Each pass is documented at the head of its own file.
#pragma once

#include "compiler/passes/pass.h"

namespace firn {

#define FIRN_PASS(function, name, summary) bool function(Module& module, const PassOptions& options);
#include "compiler/passes/passes.def"

} // namespace firn
