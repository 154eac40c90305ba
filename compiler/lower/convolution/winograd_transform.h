// Winograd's transforms as code.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/support/packing.h"

namespace firn::lower {

// Emits matrix * values; columns and rows that differ in signs alone share their sums.
std::vector<kernel::Register> emit_transform(kernel::Builder& builder, const TransformMatrix& matrix,
                                             std::vector<kernel::Register> values);

} // namespace firn::lower
