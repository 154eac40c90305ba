// Times the tasks that kernels are shared out as: on the threads of an executor, or alone, one after the
// other, for what any number of threads would take.
#pragma once

#include "compiler/driver/object_runner.h"

#include <cstdint>
#include <vector>

namespace firn::driver {

// Medians over many runs of one call of a kernel whose parallel loop is shared.
struct SharedCall {
  size_t step = 0;           // of the program, top level
  double span = 0;           // seconds from handing out the tasks to the last one's end
  std::vector<double> tasks; // seconds of each
  double work() const;       // of all tasks
  double longest() const;    // of the thread with most to do
};

// What profiled runs took, in seconds; shares of a run's time by step and the calls that are shared.
struct SharedProfile {
  std::vector<double> steps; // of the program, top level
  std::vector<SharedCall> calls;
};

// Runs profiled code for so long. With `pool` its threads share the tasks; without, `threads` threads are
// said to be there, and each task runs alone on this one. Leaves the runner without an executor.
SharedProfile profile_tasks(ObjectRunner& runner, const firn_executor* pool, size_t threads, double seconds);

// Seconds from handing out one empty task per thread to the last one's end, the median.
double measure_barrier(size_t threads);

} // namespace firn::driver
