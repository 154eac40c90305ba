// Mapping of files, and the check that keeps external data beneath the model's folder.
#include "compiler/support/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

std::optional<std::string> resolve(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return std::nullopt;
  std::string text = resolved;
  std::free(resolved);
  return text;
}

std::optional<std::string> read_standard_input() {
  std::string bytes;
  char block[1 << 16];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, block, sizeof block);
    if (count == 0) return bytes;
    if (count > 0)
      bytes.append(block, static_cast<size_t>(count));
    else if (errno != EINTR)
      return std::nullopt;
  }
}

} // namespace

Expected<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  if (path == kStandardInput) {
    static std::shared_ptr<const MappedFile> read;
    if (read) return read;
    auto bytes = read_standard_input();
    if (!bytes) return usage_error(std::string("cannot read standard input: ") + std::strerror(errno));
    return read = from_bytes(path, std::move(*bytes));
  }
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return usage_error("cannot open '" + path + "': " + std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return usage_error("'" + path + "' is not a regular file");
  }
  auto file = std::shared_ptr<MappedFile>(new MappedFile);
  file->path_ = path;
  auto size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) {
      ::close(descriptor);
      return usage_error("cannot map '" + path + "': " + std::strerror(errno));
    }
    file->bytes_ = {static_cast<const std::byte*>(address), size};
  }
  ::close(descriptor);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

Expected<std::shared_ptr<const MappedFile>> MappedFile::open_beneath(const std::string& folder,
                                                                     const std::string& relative) {
  if (relative.empty() || relative.find('\0') != std::string::npos)
    return model_error("external data has an empty or broken path");
  if (relative[0] == '/')
    return model_error("external data path '" + relative +
                       "' is absolute, wanted one beneath the model's folder");
  auto root = resolve(folder.empty() ? "." : folder);
  if (!root) return model_error("cannot find the model's folder '" + folder + "'");
  auto target = resolve(*root + "/" + relative);
  if (!target) {
    bool is_absent = errno == ENOENT || errno == EACCES;
    std::string text = "cannot open external data '" + relative + "': " + std::strerror(errno);
    if (std::filesystem::path(relative).lexically_normal().string().starts_with(".."))
      return model_error("external data path '" + relative + "' leaves the model's folder");
    return is_absent ? usage_error(text) : model_error(text);
  }
  std::string prefix = *root == "/" ? *root : *root + "/";
  if (target->compare(0, prefix.size(), prefix) != 0)
    return model_error("external data path '" + relative + "' leaves the model's folder");
  auto file = open(*target);
  if (file) return file;
  std::string text = "external data '" + relative + "': " + file.error().message;
  return std::filesystem::is_regular_file(*target) ? usage_error(text) : model_error(text);
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::string name, std::string bytes) {
  auto file = std::shared_ptr<MappedFile>(new MappedFile);
  file->path_ = std::move(name);
  file->owned_ = std::move(bytes);
  file->bytes_ = std::as_bytes(std::span(file->owned_));
  return file;
}

MappedFile::~MappedFile() {
  if (owned_.empty() && !bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release(size_t offset, size_t size) const {
  if (!owned_.empty() || bytes_.empty()) return;
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t first = (offset + page - 1) / page * page, last = (offset + size) / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

} // namespace firn
