// Time and memory of the phases of a compilation.
#pragma once

#include "compiler/driver/compile.h"

#include <chrono>

namespace firn::driver {

// Peak resident memory of this process so far, in bytes; 0 where the system does not tell.
int64_t peak_resident_bytes();

class PhaseTimer {
public:
  PhaseTimer(Compilation& compilation, const CompileOptions& options)
      : compilation_(compilation), options_(options), start_(Clock::now()), begun_(start_) {}
  // Ends the running phase and begins the next.
  void begin(std::string name);
  void end();

private:
  using Clock = std::chrono::steady_clock;
  Compilation& compilation_;
  const CompileOptions& options_;
  Clock::time_point start_, begun_;
  std::string running_;
};

} // namespace firn::driver
