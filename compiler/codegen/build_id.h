// Which build of Firn this is: caches of code give nothing to another one.
#pragma once

#include <string>

namespace firn::codegen {

// Names the files that Firn's and LLVM's code was loaded from, by their build ids, sizes and times; of files
// that tell nothing, the process, so that nothing is found again.
const std::string& build_id();

} // namespace firn::codegen
