// The digest of a file, which a thread of its own computes while the file is read for other ends.
#pragma once

#include "compiler/support/mapped_file.h"

#include <future>
#include <memory>
#include <string>

namespace firn {

// Copies share the digest. The thread has ended when hex() returns, or when the last copy is gone.
class FileDigest {
public:
  FileDigest() = default; // no file's: empty text
  explicit FileDigest(std::shared_ptr<const MappedFile> file);
  explicit FileDigest(std::string hex) : known_(std::move(hex)) {}
  // sha256_hex() of the file's bytes; waits for it.
  const std::string& hex() const { return found_.valid() ? found_.get() : known_; }

private:
  std::string known_;
  std::shared_future<std::string> found_;
};

} // namespace firn
