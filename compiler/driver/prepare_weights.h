// @prepare: the program that makes the constants of a model's programs from its own tensors, where the model
// runs (--weights=init).
#pragma once

#include "compiler/driver/stages.h"

namespace firn::driver {

// Makes compilation.prepare_module if it is asked for, and compilation.prepare if weights are prepared where
// the model runs and there is anything to prepare. Wants the constants of all programs in their places.
Result prepare_weights(const CompileOptions& options, Compilation& compilation, Stages& stages);

} // namespace firn::driver
