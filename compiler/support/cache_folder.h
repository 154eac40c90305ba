// A folder in which programs of one user keep what they can make again: machine code, models. Nothing that
// happens to it is an error of a compilation: what cannot be read is made again, and what cannot be written
// is not kept.
//
// A file per key has a checksum, is written under a temporary name and renamed. Folder and files are used
// only if they belong to this user and nobody else can write them. So two writers, a process that is killed,
// a full disk and files of others leave whole files or none.
#pragma once

#include "compiler/support/diagnostic.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace firn {

// Bytes of a cache's file, mapped read-only. They begin at a multiple of 64.
class CachedBytes {
public:
  CachedBytes(void* mapping, size_t size, std::span<const std::byte> bytes)
      : mapping_(mapping), size_(size), bytes_(bytes) {}
  CachedBytes(const CachedBytes&) = delete;
  CachedBytes& operator=(const CachedBytes&) = delete;
  ~CachedBytes();
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  void* mapping_;
  size_t size_;
  std::span<const std::byte> bytes_;
};

class CacheFolder {
public:
  // The folder, which is made with its parents if it is missing. A usage error says why it cannot be one: it
  // is another's, others may write it, it is no folder.
  static Expected<CacheFolder> open(const std::string& path, int64_t max_bytes = int64_t{1} << 30);

  // The bytes that were kept under a key of letters and digits; null if there are none that are whole.
  std::shared_ptr<const CachedBytes> find(const std::string& key) const;
  // Keeps bytes, given in pieces, if that can be done. Beyond the largest size of the folder those files go
  // that were not asked for the longest. Files that no cache wrote stay.
  void keep(const std::string& key, std::span<const std::string_view> pieces) const;

private:
  // Bytes of the folder, counted when it was last looked through, and what this process kept since.
  struct Estimate {
    std::atomic<int64_t> bytes{0};
    std::atomic<unsigned> kept{0};
  };
  CacheFolder(std::string path, int64_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes), estimate_(std::make_shared<Estimate>()) {}
  void note_kept(int64_t bytes) const;
  void trim() const;
  std::string path_;
  int64_t max_bytes_;
  std::shared_ptr<Estimate> estimate_;
};

} // namespace firn
