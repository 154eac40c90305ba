// Temporary folders.
#include "compiler/support/temporary_folder.h"

#include "compiler/support/output_set.h"
#include "compiler/support/unfinished.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <utility>

namespace firn {

Expected<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  std::string parent = std::filesystem::temp_directory_path(error).string();
  if (error) return usage_error("no folder for temporary files: $TMPDIR or /tmp: " + error.message());
  SignalsHeld held;
  std::string path = parent + "/firn-XXXXXX";
  if (!::mkdtemp(path.data()))
    return usage_error("cannot make a temporary folder in '" + parent + "': " + std::strerror(errno));
  TemporaryFolder folder;
  folder.noted_ = Unfinished::note_folder(path);
  folder.path_ = std::move(path);
  return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), noted_(std::exchange(other.noted_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(noted_, other.noted_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
  Unfinished::forget(noted_);
}

Expected<std::string> TemporaryFolder::write(const std::string& name, std::string_view content) const {
  if (size_t slash = name.find('/'); slash != name.npos)
    ::mkdir((path_ + "/" + name.substr(0, slash)).c_str(), 0700);
  std::string path = file(name);
  if (Result written = write_file(path, content); !written) return written.error();
  return path;
}

} // namespace firn
