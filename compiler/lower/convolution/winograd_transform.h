// Winograd's transforms as code.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/plan/winograd_transform.h"

namespace firn::lower {

// Emits matrix * values; columns and rows that differ in signs alone share their sums.
std::vector<kernel::Register> emit_transform(kernel::Builder& builder, const plan::TransformMatrix& matrix,
                                             std::vector<kernel::Register> values);

} // namespace firn::lower
