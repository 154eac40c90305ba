// differentiate: writes the bodies of functions that are declared to be gradients.
#include "compiler/passes/passes.h"

namespace firn {

bool differentiate(Module& module, const PassOptions& options) {
  for (const auto& function : module.functions())
    if (function->gradient)
      options.refuse(unsupported_error("@" + function->name() + ": gradients are not derived yet"));
  return false;
}

} // namespace firn
