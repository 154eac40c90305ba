// The files of one compilation, written together: each goes to a temporary name beside its place, and
// commit() renames all of them or none. Until then, and after any failure, what was there before stays.
#pragma once

#include "compiler/support/diagnostic.h"

#include <string>
#include <string_view>
#include <vector>

namespace firn::artifact {

class OutputSet {
public:
  OutputSet() = default;
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet(); // removes what was not committed

  // Registers `path` and returns the temporary name to write it to. The folder must exist and be writable.
  Expected<std::string> stage(const std::string& path);
  // Stages `path` with this content.
  Result write(const std::string& path, std::string_view content);
  // Puts all files into place. If one cannot be, those already placed are taken back.
  Result commit();

private:
  struct File {
    std::string path, temporary;
    std::string backup; // link to the file that was there; empty if there was none
    bool is_placed = false;
  };
  void take_back();
  void remove_leftovers();
  std::vector<File> files_;
};

} // namespace firn::artifact
