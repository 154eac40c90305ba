// Two phases: temporary files complete first, then renames, which replace a file at once. A hard link keeps
// each replaced file until all renames have succeeded; on file systems without links a failed commit may
// leave new files in place.
//
// Temporary names cannot be guessed and are only ever created, never opened: nothing that somebody put there
// beforehand, a symbolic link above all, is followed or overwritten.
#include "compiler/support/output_set.h"

#include "compiler/support/unfinished.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

Diagnostic cannot_write(const std::string& path, int error) {
  return usage_error("cannot write '" + path + "': " + std::strerror(error));
}

// Devices and pipes, which are written to in place; so is what only names an open file (/dev/stdout).
bool is_written_in_place(const std::string& path, const struct stat& facts) {
  return !S_ISREG(facts.st_mode) || path.starts_with("/dev/") || path.starts_with("/proc/");
}

// ".name.firn-<64 random bits>" in the folder of `path`, where a rename cannot cross file systems.
std::string sibling(const std::string& path) {
  static std::random_device device;
  const size_t slash = path.rfind('/');
  const size_t at = slash == std::string::npos ? 0 : slash + 1;
  char random[17];
  std::snprintf(random, sizeof random, "%08x%08x", device(), device());
  // A long name leaves room for the ending.
  return path.substr(0, at) + "." + path.substr(at, 200) + ".firn-" + random;
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

Result OutputSet::open_temporary(File& file) {
  SignalsHeld held;
  constexpr int attempts = 8; // a random name is hardly ever taken
  for (int i = 0; i < attempts && file.descriptor < 0; ++i) {
    file.temporary = sibling(file.path);
    file.descriptor =
        ::open(file.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file.descriptor < 0 && errno != EEXIST) return cannot_write(file.path, errno);
  }
  if (file.descriptor < 0) return cannot_write(file.path, EEXIST);
  file.noted = Unfinished::note_file(file.temporary);
  return {};
}

Expected<int> OutputSet::stage(const std::string& path) {
  for (const File& file : files_) {
    if (file.path == path) return usage_error("'" + path + "' is wanted for two outputs");
  }
  File file;
  file.path = path;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && is_written_in_place(path, facts)) {
    if (S_ISDIR(facts.st_mode)) return cannot_write(path, EISDIR);
    file.descriptor = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_TRUNC | O_CLOEXEC);
    if (file.descriptor < 0) return cannot_write(path, errno);
  } else if (Result opened = open_temporary(file); !opened) {
    return opened.error();
  }
  files_.push_back(std::move(file));
  return files_.back().descriptor;
}

Result OutputSet::write(const std::string& path, std::string_view content) {
  Expected<int> file = stage(path);
  if (!file) return file.error();
  if (const int error = write_all(*file, content); error != 0) return cannot_write(path, error);
  return {};
}

// Some file systems tell only here that the disk is full.
Result OutputSet::close_all() {
  Result result;
  for (File& file : files_) {
    if (file.descriptor >= 0 && ::close(file.descriptor) != 0 && result)
      result = cannot_write(file.path, errno);
    file.descriptor = -1;
  }
  return result;
}

Result OutputSet::commit() {
  SignalsHeld held; // all or none
  if (Result closed = close_all(); !closed) {
    remove_leftovers();
    return closed;
  }
  for (File& file : files_) {
    if (file.temporary.empty()) continue;
    std::string backup = sibling(file.path);
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
    if (file.descriptor >= 0) ::close(file.descriptor);
    if (!file.is_placed && !file.temporary.empty()) ::unlink(file.temporary.c_str());
    if (!file.backup.empty()) ::unlink(file.backup.c_str());
    Unfinished::forget(file.noted);
  }
  files_.clear();
}

Result StagedFile::write(std::string_view bytes) {
  if (descriptor_ < 0) {
    Expected<int> file = outputs_.stage(path_);
    if (!file) return file.error();
    descriptor_ = *file;
  }
  if (const int error = write_all(descriptor_, bytes); error != 0) return cannot_write(path_, error);
  return {};
}

Result write_file(const std::string& path, std::string_view content) {
  OutputSet outputs;
  if (Result written = outputs.write(path, content); !written) return written;
  return outputs.commit();
}

} // namespace firn
