// See process_cache.h. A process that changes folders keeps the code of the last one.
#include "compiler/driver/process_cache.h"

#include <mutex>

namespace firn::driver {

ProcessCache process_cache(const std::string& folder) {
  static std::mutex mutex;
  static std::string last_folder;
  static ProcessCache last;
  std::lock_guard lock(mutex);
  if (last.cache && last.warning.empty() && folder == last_folder) return last;
  last_folder = folder;
  last = {};
  std::optional<CacheFolder> opened;
  if (!folder.empty()) {
    if (auto found = CacheFolder::open(folder))
      opened = std::move(*found);
    else
      last.warning = "machine code is not cached: " + found.error().message;
  }
  last.cache = std::make_shared<codegen::CodeCache>(std::move(opened));
  return last;
}

} // namespace firn::driver
