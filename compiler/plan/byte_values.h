// Values of wider types that are those of bytes.
#pragma once

#include "compiler/graph/module.h"

namespace firn::plan {

// Whether every element is between -128 and 255, and a whole number where the type is an integer: what makes
// them widens bytes, keeps them between such bounds, or moves what is.
bool holds_bytes(Value value);

} // namespace firn::plan
