// A file mapped read-only into memory: how model files and external weights are read without copying them.
#pragma once

#include "compiler/support/diagnostic.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace firn {

// The path that stands for standard input.
inline constexpr char kStandardInput[] = "-";

// bytes() live as long as the object.
class MappedFile {
public:
  // Maps `path`; an unreadable file or a folder is a usage error that names the path. Standard input is read
  // to its end by the first call for it, and is the same file for all others.
  static Expected<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // Maps `relative` only if it is a regular file beneath `folder` after resolving symbolic links; a path that
  // leaves the folder is a model error, a file that is not there a usage error. This is how external data of
  // untrusted models is opened.
  static Expected<std::shared_ptr<const MappedFile>> open_beneath(const std::string& folder,
                                                                  const std::string& relative);
  // Wraps bytes that live in memory, for tests.
  static std::shared_ptr<const MappedFile> from_bytes(std::string name, std::string bytes);

  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // Tells the system that this range will not be read again soon, so that streaming a big model stays small.
  void release(size_t offset, size_t size) const;

private:
  MappedFile() = default;
  std::string path_;
  std::string owned_; // from_bytes
  std::span<const std::byte> bytes_;
};

} // namespace firn
