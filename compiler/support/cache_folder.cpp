// Files of a cache: a head with size and checksum, then the bytes.
#include "compiler/support/cache_folder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <vector>

namespace firn {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[16] = "firn cache 1\n";
constexpr unsigned kKeptBetweenLooks = 64;
constexpr std::chrono::hours kLeftover{1}; // temporary files older than this are nobody's any more

struct Head {
  char magic[16];
  uint64_t size, checksum;
  char padding[32]; // the bytes begin at a multiple of 64
};
static_assert(sizeof(Head) == 64);

// Four chains of multiplications over words of 8 bytes run at the speed of memory. They find damage, and no
// attack: files of others are not read.
class Checksum {
public:
  void add(std::string_view bytes) {
    size_ += bytes.size();
    for (; filled_ > 0 && !bytes.empty(); bytes.remove_prefix(1)) push(bytes.front());
    for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) block(bytes.data());
    for (char byte : bytes) push(byte);
  }
  uint64_t finish() {
    while (filled_ > 0) push(0);
    uint64_t all = size_;
    for (uint64_t chain : chains_) all = (all ^ chain) * kPrime, all ^= all >> 29;
    return all;
  }

private:
  static constexpr size_t kBlock = 32;
  static constexpr uint64_t kPrime = 0x9fb21c651e98df25;

  void push(char byte) {
    begun_[filled_++] = byte;
    if (filled_ < kBlock) return;
    block(begun_);
    filled_ = 0;
  }
  void block(const char* bytes) {
    for (uint64_t& chain : chains_) {
      uint64_t word;
      std::memcpy(&word, bytes, sizeof word);
      chain = (chain ^ word) * kPrime;
      chain ^= chain >> 32;
      bytes += sizeof word;
    }
  }

  uint64_t chains_[4] = {1, 2, 3, 4}, size_ = 0;
  char begun_[kBlock];
  size_t filled_ = 0;
};

// Closes a descriptor at the end of a block.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

bool is_own(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Whether a name is one that temporary_name() gives.
bool is_temporary_name(const std::string& name) {
  return name.starts_with('.') && name.ends_with(".tmp") && std::count(name.begin(), name.end(), '.') == 4 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || is_letter_or_digit(c); });
}

// Whether a cache wrote the file: a folder may hold more.
bool has_head(const fs::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  char magic[sizeof kMagic];
  return file.number >= 0 && ::read(file.number, magic, sizeof magic) == sizeof magic &&
         std::memcmp(magic, kMagic, sizeof magic) == 0;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A name that no other writer has.
std::string temporary_name(const std::string& path, const std::string& key) {
  static std::atomic<unsigned> count{0};
  return path + "/." + key + "." + std::to_string(::getpid()) + "." + std::to_string(++count) + ".tmp";
}

bool write_file_of(int descriptor, std::span<const std::string_view> pieces) {
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  Checksum checksum;
  for (std::string_view piece : pieces) {
    head.size += piece.size();
    checksum.add(piece);
  }
  head.checksum = checksum.finish();
  if (!write_all(descriptor, {reinterpret_cast<const char*>(&head), sizeof head})) return false;
  return std::all_of(pieces.begin(), pieces.end(),
                     [&](std::string_view piece) { return write_all(descriptor, piece); });
}

bool is_whole(std::span<const std::byte> file) {
  Head head;
  if (file.size() < sizeof head) return false;
  std::memcpy(&head, file.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.size != file.size() - sizeof head)
    return false;
  Checksum checksum;
  checksum.add({reinterpret_cast<const char*>(file.data()) + sizeof head, file.size() - sizeof head});
  return checksum.finish() == head.checksum;
}

} // namespace

CachedBytes::~CachedBytes() {
  ::munmap(mapping_, size_);
}

Expected<CacheFolder> CacheFolder::open(const std::string& path, int64_t max_bytes) {
  std::error_code error;
  fs::path folder(path);
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return usage_error("the folder '" + path + "' for the cache cannot be made: " + std::strerror(errno));
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return usage_error("the cache wants a folder, and '" + path + "' is none");
  if (!is_own(status))
    return usage_error("the folder '" + path +
                       "' for the cache belongs to another user, or others may write it (chmod go-w)");
  return CacheFolder(path, max_bytes);
}

std::shared_ptr<const CachedBytes> CacheFolder::find(const std::string& key) const {
  Descriptor file{::open((path_ + "/" + key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0 || !S_ISREG(status.st_mode) || !is_own(status))
    return nullptr;
  const auto size = static_cast<size_t>(status.st_size);
  if (size < sizeof(Head)) return nullptr;
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapping == MAP_FAILED) return nullptr;
  std::span all(static_cast<const std::byte*>(mapping), size);
  auto found = std::make_shared<const CachedBytes>(mapping, size, all.subspan(sizeof(Head)));
  if (!is_whole(all)) return nullptr;
  ::futimens(file.number, nullptr); // it was asked for
  return found;
}

void CacheFolder::keep(const std::string& key, std::span<const std::string_view> pieces) const {
  const std::string temporary = temporary_name(path_, key);
  bool is_written = false;
  {
    Descriptor file{
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR)};
    if (file.number < 0) return;
    is_written = write_file_of(file.number, pieces);
  }
  if (!is_written || ::rename(temporary.c_str(), (path_ + "/" + key).c_str()) != 0)
    ::unlink(temporary.c_str());
  else
    note_kept(std::accumulate(
        pieces.begin(), pieces.end(), static_cast<int64_t>(sizeof(Head)),
        [](int64_t sum, std::string_view piece) { return sum + static_cast<int64_t>(piece.size()); }));
}

// Looks through a folder, which may have many files, only now and then: others keep files there, too.
void CacheFolder::note_kept(int64_t bytes) const {
  if ((estimate_->bytes += bytes) > max_bytes_ || estimate_->kept++ % kKeptBetweenLooks == 0) trim();
}

void CacheFolder::trim() const {
  struct Kept {
    fs::file_time_type asked_for;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Kept> all;
  int64_t bytes = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone; // another process may have removed it
    const auto size = static_cast<int64_t>(at->file_size(gone));
    const auto time = at->last_write_time(gone);
    if (gone) continue;
    const std::string name = at->path().filename().string();
    if (is_temporary_name(name) && now - time > kLeftover) fs::remove(at->path(), gone);
    if (!std::all_of(name.begin(), name.end(), is_letter_or_digit)) continue;
    all.push_back({time, size, at->path()});
    bytes += size;
  }
  estimate_->bytes = bytes;
  if (bytes <= max_bytes_) return;
  std::erase_if(all, [&](const Kept& kept) {
    const bool is_others = !has_head(kept.path);
    if (is_others) bytes -= kept.bytes;
    return is_others;
  });
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.asked_for < b.asked_for; });
  for (const Kept& oldest : all) {
    if (bytes <= max_bytes_) break;
    if (fs::remove(oldest.path, error)) bytes -= oldest.bytes;
  }
  estimate_->bytes = bytes;
}

} // namespace firn
