// Times the tasks of shared kernels: on the threads of an executor, or one after the other on one thread, to
// simulate any number of threads.
#pragma once

#include "compiler/driver/object_runner.h"

#include <cstdint>
#include <vector>

namespace firn::driver {

// Medians over many runs of one call of a kernel whose parallel loop is shared.
struct SharedCall {
  size_t step = 0;           // its index among the top-level steps
  double span = 0;           // seconds from handing out the tasks to the last one's end
  std::vector<double> tasks; // seconds of each
  double work() const;       // seconds of all tasks
  double longest() const;    // seconds of the thread with most to do
};

// Seconds of profiled runs: the medians of each step, and of the calls that are shared.
struct SharedProfile {
  std::vector<double> steps; // top-level steps of the program
  std::vector<SharedCall> calls;
};

// Runs profiled code for so many seconds. With `pool` its threads share the tasks; without, `threads` threads
// are said to be there, and each task runs alone on this one. Leaves the runner without an executor.
SharedProfile profile_tasks(ObjectRunner& runner, const firn_executor* pool, size_t threads, double seconds);

// Seconds from handing out one empty task per thread to the last one's end, the median.
double measure_barrier(size_t threads);

} // namespace firn::driver
