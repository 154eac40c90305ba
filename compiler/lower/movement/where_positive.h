// Conditions on extents that only a run knows.
#pragma once

#include "compiler/kernel/builder.h"

#include <functional>
#include <vector>

namespace firn::lower {

// Emits `body` for runs in which all of `rooms` are above 0.
void where_all_positive(kernel::Builder& b, const std::vector<IntExpr>& rooms,
                        const std::function<void()>& body);

} // namespace firn::lower
