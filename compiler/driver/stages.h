// The stages of a compilation as its user sees them: time and memory of each, progress, and the text of every
// module and program that a pass changed.
#pragma once

#include "compiler/driver/compile.h"
#include "compiler/kernel/passes/pass.h"
#include "compiler/passes/pass.h"

#include <chrono>

namespace firn::driver {

// Peak resident memory of this process so far, in bytes; 0 where the system does not tell.
int64_t peak_resident_bytes();

// Thrown at the next pass or stage of a compilation that was asked to stop (CompileOptions::stop).
struct Stopped {};

class Stages {
public:
  Stages(const CompileOptions& options, Compilation& compilation);
  // Ends the running stage and begins the next.
  void begin(std::string name);
  void end();
  const std::string& running() const { return running_; }

  // Runs passes and writes the text after each that changed something into the folder of --dump-passes.
  Result run(Module& module, const std::string& passes, const PassOptions& options);
  Result run(kernel::Program& program, const std::string& passes, const kernel::KernelPassOptions& options);

private:
  template <class Unit> auto dump(const char* extension, std::string (*print)(const Unit&));
  void end_if_stopped() const;
  void add_time(const std::string& name, double seconds, int64_t peak_bytes);
  void add_timings(const std::vector<PassTiming>& timings);

  using Clock = std::chrono::steady_clock;
  const CompileOptions& options_;
  Compilation& compilation_;
  Clock::time_point start_, begun_;
  std::string running_;
  int dumped_ = 0; // passes that have run
  Result written_; // the first text that could not be written
};

} // namespace firn::driver
