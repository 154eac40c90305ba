// Code in pieces that LLVM keeps apart. In straight code it would interleave what is independent and keep
// what one piece loads for the next, more than there are registers.
#pragma once

#include "compiler/kernel/builder.h"

#include <functional>

namespace firn::lower {

// Emits piece(0) to piece(count - 1), which run one after the other, as branches of a loop.
void emit_pieces(kernel::Builder& builder, int count, const std::function<void(int)>& piece);

} // namespace firn::lower
