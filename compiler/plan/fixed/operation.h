// Operations that have one kernel each.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/plan/algorithm.h"

#include <optional>

namespace firn::plan {

// The algorithm of the one kernel that an operation has; nothing: it has none, or several to choose from.
std::optional<Algorithm> algorithm_of_operation(const Instruction& instruction);

} // namespace firn::plan
