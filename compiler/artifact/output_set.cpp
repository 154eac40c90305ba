// Two phases: temporary files complete first, then renames, which replace a file at once. A hard link keeps
// each replaced file until all renames have succeeded; on file systems without links a failed commit may
// leave new files in place.
#include "compiler/artifact/output_set.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn::artifact {
namespace {

Diagnostic cannot_write(const std::string& path, int error) {
  return usage_error("cannot write '" + path + "': " + std::strerror(error));
}

bool is_directory(const std::string& path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// ".name.firn-<process>-<kind>" in the folder of `path`, where a rename cannot cross file systems.
std::string sibling(const std::string& path, const std::string& kind) {
  const size_t slash = path.rfind('/');
  const size_t at = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, at) + "." + path.substr(at) + ".firn-" + std::to_string(::getpid()) + "-" + kind;
}

int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

} // namespace

OutputSet::~OutputSet() {
  remove_leftovers();
}

Expected<std::string> OutputSet::stage(const std::string& path) {
  for (const File& file : files_) {
    if (file.path == path) return usage_error("'" + path + "' is wanted for two outputs");
  }
  if (is_directory(path)) return cannot_write(path, EISDIR);
  std::string temporary = sibling(path, "new");
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return cannot_write(path, errno);
  ::close(file);
  files_.push_back({path, temporary, "", false});
  return temporary;
}

Result OutputSet::write(const std::string& path, std::string_view content) {
  Expected<std::string> temporary = stage(path);
  if (!temporary) return temporary.error();
  const int file = ::open(temporary->c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) return cannot_write(path, errno);
  int error = write_all(file, content);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error != 0) return cannot_write(path, error);
  return {};
}

Result OutputSet::commit() {
  for (File& file : files_) {
    std::string backup = sibling(file.path, "old");
    ::unlink(backup.c_str());
    if (::link(file.path.c_str(), backup.c_str()) == 0) file.backup = std::move(backup);
    if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) {
      const Diagnostic reason = cannot_write(file.path, errno);
      take_back();
      remove_leftovers();
      return reason;
    }
    file.is_placed = true;
  }
  remove_leftovers();
  return {};
}

void OutputSet::take_back() {
  for (File& file : files_) {
    if (!file.is_placed) continue;
    if (file.backup.empty()) {
      ::unlink(file.path.c_str());
    } else {
      ::rename(file.backup.c_str(), file.path.c_str());
      file.backup.clear();
    }
    file.is_placed = false;
  }
}

void OutputSet::remove_leftovers() {
  for (const File& file : files_) {
    if (!file.is_placed) ::unlink(file.temporary.c_str());
    if (!file.backup.empty()) ::unlink(file.backup.c_str());
  }
  files_.clear();
}

} // namespace firn::artifact
