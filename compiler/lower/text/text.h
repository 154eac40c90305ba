// Strings in kernels: their constants, the room where they are made, and calls of the runtime.
#pragma once

#include "compiler/lower/lowering_context.h"

namespace firn::lower {

// The strings of a constant in the object: all their bytes, and for each string its offset and size there.
// Without strings there is one place, of no bytes.
struct TextTable {
  LiteralRef places; // u32[n,2]
  LiteralRef bytes;  // u8, at least one
};
TextTable text_table(const std::vector<std::string>& strings);

} // namespace firn::lower
