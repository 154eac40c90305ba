// A place for files that only this process needs.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string>
#include <string_view>

namespace firn {

// A new folder in $TMPDIR or the system's folder for temporary files, which nobody else may enter; removed
// with all its content by the destructor, and by a signal.
class TemporaryFolder {
public:
  static Expected<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;

  const std::string& path() const { return path_; }
  // The path of a file that is going to be in the folder.
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Makes a file with this content, and the folder in it that `name` may begin with; its path.
  Expected<std::string> write(const std::string& name, std::string_view content) const;

private:
  TemporaryFolder() = default;
  std::string path_;
  int noted_ = -1; // in Unfinished
};

} // namespace firn
