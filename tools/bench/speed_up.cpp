// Measures the gain of two threads: a model compiled for two threads on a pool of both cores, against the
// model compiled for one, alone and as two copies that run at the same time, each on a core of its own. The
// copies' joint rate is an upper bound for two threads of this machine. Driven by speed_up.sh.
#include "one.h"
#include "two.h"

#include <firn/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

template <class Model> struct Instance {
  std::unique_ptr<typename Model::Arena> arena{new typename Model::Arena()};
  Model model{*arena};
};

// Seconds of one run, over a block of them.
template <class Run> double seconds_of(int runs, Run run) {
  auto start = Clock::now();
  for (int i = 0; i < runs; ++i)
    if (!run()) std::abort();
  return seconds_since(start) / runs;
}

// Runs per second of both copies together.
template <class Copies> double copies_per_second(Copies& copies, double seconds) {
  std::atomic<int> ready{0};
  double rates[2];
  auto work = [&](int core) {
    pin(core);
    ++ready;
    while (ready < 2) {
    }
    auto start = Clock::now();
    long runs = 0;
    do {
      if (!copies[core].model.run()) std::abort();
      ++runs;
    } while (seconds_since(start) < seconds);
    rates[core] = static_cast<double>(runs) / seconds_since(start);
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  return rates[0] + rates[1];
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

} // namespace

int main(int, char** arguments) {
  double seconds = std::atof(arguments[2]);
  firn::ThreadPool pool(2, /*pinned=*/true);
  pin(0);
  firn::Executor executor(pool);
  Instance<two::Model> shared;
  Instance<one::Model> copies[2];
  auto alone = [&] { return bool(copies[0].model.run()); };
  seconds_of(1, alone);
  double once = seconds_of(1, alone);
  int runs = std::max(1, static_cast<int>(0.06 / once));
  std::vector<double> ones, twos, serial, together;
  auto start = Clock::now();
  while (ones.size() < 7 || seconds_since(start) < seconds) {
    twos.push_back(seconds_of(runs, [&] { return bool(shared.model.run(executor)); }));
    ones.push_back(seconds_of(runs, alone));
    serial.push_back(seconds_of(runs, [&] { return bool(shared.model.run()); }));
    together.push_back(copies_per_second(copies, std::max(0.02, 4 * once)));
  }
  double speed_up = median(ones) / median(twos), most = median(together) * median(ones);
  std::printf("| %s | %.4g | %.4g | %.2f | %.2f | %.3f |\n", arguments[1], median(ones) * 1e3,
              median(twos) * 1e3, speed_up, speed_up / most, median(serial) / median(ones));
}
