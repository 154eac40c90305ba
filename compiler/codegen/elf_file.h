// Reads the ELF object that LLVM made, checks that it needs nothing it must not need, and writes the final
// file with the weights streamed into their section.
#pragma once

#include "compiler/codegen/codegen.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace firn::codegen {

// Facts of the object, with text sizes of the functions in `kernel_symbols` (names as in the symbol table).
// Fails with Fault::Internal on undefined symbols outside the allowed set, constructors, writable data,
// unwind tables.
Expected<ObjectFacts> inspect_elf(std::span<const char> object, std::span<const std::string> kernel_symbols);

// Writes `object` to `path`; the section named `weights` gets the program's constants instead of its
// placeholder.
Expected<int64_t> write_elf(std::span<const char> object, const std::string& path, const std::string& weights,
                            const kernel::Program& program);

} // namespace firn::codegen
