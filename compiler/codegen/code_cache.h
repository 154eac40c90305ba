// Keeps the machine code of parts, so that a kernel is generated once: for the compilations of one process in
// memory, and in a folder for those of others.
#pragma once

#include "compiler/support/cache_folder.h"

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace firn::codegen {

// The object of a part, and the frames of its functions.
struct CachedCode {
  std::string object;
  int64_t kernel_stack = 0, other_stack = 0;
};

// Threads may share a cache.
class CodeCache {
public:
  // `folder`: empty: none.
  explicit CodeCache(std::optional<CacheFolder> folder = std::nullopt,
                     int64_t max_bytes_in_memory = int64_t{64} << 20)
      : folder_(std::move(folder)), max_bytes_(max_bytes_in_memory) {}

  // `key`: a digest of all that the code depends on (KernelPart::key).
  std::optional<CachedCode> find(const std::string& key);
  void keep(const std::string& key, const CachedCode& code);

private:
  struct Entry {
    std::string key;
    CachedCode code;
  };
  std::optional<CachedCode> find_in_memory(const std::string& key);
  void keep_in_memory(const std::string& key, const CachedCode& code);

  const std::optional<CacheFolder> folder_;
  const int64_t max_bytes_;
  std::mutex mutex_;         // guards what follows
  std::list<Entry> entries_; // the one that was asked for last comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;
  int64_t bytes_ = 0;
};

} // namespace firn::codegen
