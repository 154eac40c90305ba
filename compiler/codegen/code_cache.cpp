// See code_cache.h.
#include "compiler/codegen/code_cache.h"

#include <cstring>

namespace firn::codegen {
namespace {

// Begins the file of a part.
struct Head {
  int64_t kernel_stack, other_stack;
};

CachedCode decode(std::span<const std::byte> bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  return {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, head.kernel_stack, head.other_stack};
}

} // namespace

std::optional<CachedCode> CodeCache::find(const std::string& key) {
  if (auto found = find_in_memory(key)) return found;
  auto kept = folder_ ? folder_->find(key) : nullptr;
  if (!kept || kept->bytes().size() < sizeof(Head)) return std::nullopt;
  CachedCode code = decode(kept->bytes());
  keep_in_memory(key, code);
  return code;
}

void CodeCache::keep(const std::string& key, const CachedCode& code) {
  keep_in_memory(key, code);
  if (!folder_) return;
  const Head head{code.kernel_stack, code.other_stack};
  const std::string_view pieces[] = {{reinterpret_cast<const char*>(&head), sizeof head}, code.object};
  folder_->keep(key, pieces);
}

std::optional<CachedCode> CodeCache::find_in_memory(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = places_.find(key);
  if (found == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->code;
}

void CodeCache::keep_in_memory(const std::string& key, const CachedCode& code) {
  std::lock_guard lock(mutex_);
  if (auto found = places_.find(key); found != places_.end()) {
    bytes_ +=
        static_cast<int64_t>(code.object.size()) - static_cast<int64_t>(found->second->code.object.size());
    found->second->code = code;
    entries_.splice(entries_.begin(), entries_, found->second);
  } else {
    entries_.push_front({key, code});
    places_.emplace(entries_.front().key, entries_.begin());
    bytes_ += static_cast<int64_t>(code.object.size());
  }
  while (bytes_ > max_bytes_) {
    bytes_ -= static_cast<int64_t>(entries_.back().code.object.size());
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

} // namespace firn::codegen
