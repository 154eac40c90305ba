// The cache of machine code that the compilations of this process share.
#pragma once

#include "compiler/codegen/code_cache.h"

#include <memory>
#include <string>

namespace firn::driver {

struct ProcessCache {
  std::shared_ptr<codegen::CodeCache> cache;
  std::string warning; // the reason why the folder is not used; empty if it is, or if there is none
};

// The cache that keeps code in this folder, too; empty: in memory alone. A folder that cannot be used fails
// no compilation: its cache is in memory.
ProcessCache process_cache(const std::string& folder);

} // namespace firn::driver
