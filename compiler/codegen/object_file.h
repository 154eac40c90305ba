// Reads the object that LLVM made, in any of its formats, and checks that it needs nothing it must not
// need.
#pragma once

#include "compiler/codegen/codegen.h"

#include <set>
#include <span>
#include <string>

namespace firn::codegen {

// Facts of the object, with text sizes of the functions in `kernel_symbols` (names as in LLVM IR).
// `embedded_weights` bytes of its constants are the model's weights, which ObjectFacts::rodata_bytes leaves
// out. Fails with Fault::Internal on undefined symbols outside the allowed set and `custom`, functions of the
// program, and on constructors, writable data, unwind tables.
Expected<ObjectFacts> inspect_object(std::span<const char> object,
                                     std::span<const std::string> kernel_symbols, int64_t embedded_weights,
                                     const std::set<std::string>& custom);

} // namespace firn::codegen
