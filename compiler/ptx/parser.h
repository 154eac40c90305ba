// Reads the text of a PTX module: what `nvcc -ptx` and LLVM's NVPTX back end write for PTX 7.0 and later.
#pragma once

#include "compiler/ptx/syntax.h"
#include "compiler/support/diagnostic.h"

#include <string_view>

namespace firn::ptx {

// The module of a text. An error names the line, what was found and what was wanted; nothing that is not
// understood is left out, but line tables, debug sections and hints for performance.
Expected<Unit> parse_unit(std::string_view text);

} // namespace firn::ptx
