// Checks of the tables of an object. LLVM's linker trusts them, and reads and writes outside its memory where
// they are wrong.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstddef>
#include <span>

namespace firn::load {

// Checks that the bytes are a relocatable 64-bit ELF object for the CPU of this process, whole, and that
// every section, name, symbol and relocation lies in what holds it. The records of unwinding tables are not
// looked at.
Result check_elf(std::span<const std::byte> object);

} // namespace firn::load
