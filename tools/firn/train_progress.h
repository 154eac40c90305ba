// How far a training has come, on standard error: a line for each epoch, and on a terminal one that is
// rewritten while it runs.
#pragma once

#include "compiler/driver/train/train.h"

#include <chrono>

namespace firn::tool {

class TrainProgress {
public:
  explicit TrainProgress(bool quiet);
  // Each prints unless it is quiet; warnings are the caller's.
  void note(const std::string& line);
  void show_step(const driver::StepReport& report);
  void show_epoch(const driver::EpochReport& report);
  // Takes the line that is rewritten away.
  void clear();

private:
  const bool is_quiet_, is_rewritten_;
  bool has_line_ = false;
  std::chrono::steady_clock::time_point shown_;
};

} // namespace firn::tool
