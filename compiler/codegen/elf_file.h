// Writes the final ELF file from the object that LLVM made, with the weights streamed into their section.
#pragma once

#include "compiler/codegen/codegen.h"

#include <cstddef>
#include <span>
#include <string>

namespace firn::codegen {

struct WrittenElf {
  int64_t bytes = 0;
  uint64_t weights_hash = 0; // kernel/weights_hash.h
};

// Writes `object` to `sink`; the section named `weights` gets the program's constants
// instead of its placeholder.
Expected<WrittenElf> write_elf(std::span<const char> object, ByteSink& sink, const std::string& weights,
                               const kernel::Program& program);

} // namespace firn::codegen
