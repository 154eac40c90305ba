// How the results of leaves become one: their sum, or the smallest or largest.
#pragma once

#include "compiler/kernel/builder.h"

namespace firn::lower {

inline kernel::Register combine_leaves(kernel::Builder& b, Opcode reducer, kernel::Register sum,
                                       kernel::Register value) {
  kernel::OpKind kind = reducer == Opcode::Add       ? kernel::OpKind::FAdd
                        : reducer == Opcode::Minimum ? kernel::OpKind::FMinimum
                                                     : kernel::OpKind::FMaximum;
  return b.binary(kind, sum, value);
}

} // namespace firn::lower
