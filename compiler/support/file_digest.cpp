// See file_digest.h.
#include "compiler/support/file_digest.h"

#include "compiler/support/sha256.h"

#include <algorithm>

namespace firn {
namespace {

constexpr size_t kChunk = size_t{4} << 20;

// Gives the pages back behind itself: a file larger than memory may be on its way through.
std::string digest_of(const MappedFile& file) {
  Sha256 sha;
  for (size_t at = 0; at < file.bytes().size(); at += kChunk) {
    const size_t size = std::min(kChunk, file.bytes().size() - at);
    sha.add(file.bytes().subspan(at, size));
    file.release(at, size);
  }
  return sha.hex();
}

} // namespace

FileDigest::FileDigest(std::shared_ptr<const MappedFile> file) {
  // The digest of a small file costs less than a thread. If the system gives no more threads, hex() computes
  // that of a large one, too.
  const bool is_small = file->bytes().size() < kChunk;
  const auto policy = is_small ? std::launch::deferred : std::launch::async | std::launch::deferred;
  found_ = std::async(policy, [file = std::move(file)] { return digest_of(*file); });
}

} // namespace firn
