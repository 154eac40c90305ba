// Winograd's transforms as code.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/support/packing.h"

namespace firn::lower {

// sum + factor * value, of floats or, by a whole factor, of integers.
kernel::Register emit_sum(kernel::Builder& builder, double factor, kernel::Register value,
                          kernel::Register sum);
// Emits matrix * values; columns and rows that differ in signs alone share their sums.
std::vector<kernel::Register> emit_transform(kernel::Builder& builder, const TransformMatrix& matrix,
                                             std::vector<kernel::Register> values);

} // namespace firn::lower
