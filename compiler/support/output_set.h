// The one way to write files. The files of one call are written together: each goes to a temporary name
// beside its place, and commit() renames all of them or none. Until then, and after any failure or signal,
// what was there before stays.
#pragma once

#include "compiler/support/byte_sink.h"

#include <string>
#include <string_view>
#include <vector>

namespace firn {

class OutputSet {
public:
  OutputSet() = default;
  OutputSet(const OutputSet&) = delete;
  OutputSet& operator=(const OutputSet&) = delete;
  ~OutputSet(); // removes what was not committed

  // Registers `path` and returns a descriptor to write its content to, which the set closes. The folder must
  // exist and be writable; a device or pipe that has this name is written to as it is.
  Expected<int> stage(const std::string& path);
  // Stages `path` with this content.
  Result write(const std::string& path, std::string_view content);
  // Puts all files into place. If one cannot be, those already placed are taken back.
  Result commit();

private:
  struct File {
    std::string path;
    std::string temporary; // empty if `path` itself is written to
    int descriptor = -1;
    int noted = -1;     // in Unfinished
    std::string backup; // link to the file that was there; empty if there was none
    bool is_placed = false;
  };
  Result open_temporary(File& file);
  Result close_all();
  void take_back();
  void remove_leftovers();
  std::vector<File> files_;
};

// One file of a set, staged with its first bytes: a writer that fails before these touches no file.
class StagedFile final : public ByteSink {
public:
  StagedFile(OutputSet& outputs, std::string path) : outputs_(outputs), path_(std::move(path)) {}
  Result write(std::string_view bytes) override;

private:
  OutputSet& outputs_;
  std::string path_;
  int descriptor_ = -1;
};

// Writes one file: all of it or, after a failure, what was there before.
Result write_file(const std::string& path, std::string_view content);

} // namespace firn
