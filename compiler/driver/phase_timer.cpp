// Time and memory of the phases of a compilation.
#include "compiler/driver/phase_timer.h"

#include <sys/resource.h>

namespace firn::driver {

int64_t peak_resident_bytes() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

void PhaseTimer::begin(std::string name) {
  end();
  running_ = std::move(name);
  if (options_.progress) options_.progress(running_);
}

void PhaseTimer::end() {
  auto now = Clock::now();
  if (!running_.empty())
    compilation_.phases.push_back(
        {running_, std::chrono::duration<double>(now - begun_).count(), peak_resident_bytes()});
  running_.clear();
  begun_ = now;
  compilation_.seconds = std::chrono::duration<double>(now - start_).count();
}

} // namespace firn::driver
