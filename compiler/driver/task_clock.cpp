// See task_clock.h.
#include "compiler/driver/task_clock.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace firn::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxRuns = 400; // each is kept until medians are taken

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// An executor that notes how long tasks take. The step that is running is the first one without a stamp.
class TaskClock {
public:
  TaskClock(const std::vector<uint64_t>& stamps, const firn_executor* pool, size_t threads)
      : stamps_(stamps),
        pool_(pool), executor_{sizeof(firn_executor), this, pool ? pool->concurrency : threads, run_tasks,
                               pool && pool->parallel_together ? run_tasks_together : nullptr} {}

  const firn_executor* executor() const { return &executor_; }
  std::vector<SharedCall> take_calls() {
    step_ = 0;
    return std::exchange(calls_, {});
  }

private:
  static void run_tasks(void* context, size_t count, firn_task task, void* data) {
    static_cast<TaskClock*>(context)->run(count, task, data);
  }
  static int run_tasks_together(void* context, size_t count, firn_task task, void* data) {
    return static_cast<TaskClock*>(context)->run_together(count, task, data) ? 1 : 0;
  }
  static void run_timed(void* context, size_t index) {
    auto* clock = static_cast<TaskClock*>(context);
    auto start = Clock::now();
    clock->task_(clock->data_, index);
    clock->calls_.back().tasks[index] = seconds_since(start);
  }

  void begin(size_t count, firn_task task, void* data) {
    while (step_ + 2 < stamps_.size() && stamps_[step_ + 1] != 0) ++step_;
    calls_.push_back({step_, 0, std::vector<double>(count)});
    task_ = task;
    data_ = data;
  }

  void run(size_t count, firn_task task, void* data) {
    begin(count, task, data);
    auto start = Clock::now();
    if (pool_)
      pool_->parallel_for(pool_->context, count, run_timed, this);
    else
      for (size_t i = 0; i < count; ++i) run_timed(this, i);
    calls_.back().span = seconds_since(start);
  }

  // Time that tasks wait for each other counts as their work.
  bool run_together(size_t count, firn_task task, void* data) {
    begin(count, task, data);
    auto start = Clock::now();
    bool ran = pool_->parallel_together(pool_->context, count, run_timed, this) != 0;
    calls_.back().span = seconds_since(start);
    if (!ran) calls_.pop_back();
    return ran;
  }

  const std::vector<uint64_t>& stamps_;
  const firn_executor* pool_;
  firn_executor executor_;
  size_t step_ = 0;
  firn_task task_ = nullptr; // the current call's
  void* data_ = nullptr;
  std::vector<SharedCall> calls_;
};

// One run: its calls, and the seconds of its steps.
struct TimedRun {
  std::vector<double> steps;
  std::vector<SharedCall> calls;
};

// Calls differ if the model branches by its data; only runs with the calls of the first one count.
bool alike(const TimedRun& a, const TimedRun& b) {
  return std::equal(a.calls.begin(), a.calls.end(), b.calls.begin(), b.calls.end(),
                    [](const SharedCall& x, const SharedCall& y) {
                      return x.step == y.step && x.tasks.size() == y.tasks.size();
                    });
}

SharedProfile medians(std::vector<TimedRun> runs) {
  std::erase_if(runs, [first = runs.front()](const TimedRun& run) { return !alike(run, first); });
  auto over_runs = [&](auto part) {
    std::vector<double> values;
    for (const TimedRun& run : runs) values.push_back(part(run));
    return median(std::move(values));
  };
  SharedProfile profile = {runs.front().steps, runs.front().calls};
  for (size_t i = 0; i < profile.steps.size(); ++i)
    profile.steps[i] = over_runs([&](const TimedRun& run) { return run.steps[i]; });
  for (size_t i = 0; i < profile.calls.size(); ++i) {
    profile.calls[i].span = over_runs([&](const TimedRun& run) { return run.calls[i].span; });
    for (size_t t = 0; t < profile.calls[i].tasks.size(); ++t)
      profile.calls[i].tasks[t] = over_runs([&](const TimedRun& run) { return run.calls[i].tasks[t]; });
  }
  return profile;
}

} // namespace

double SharedCall::work() const {
  return std::accumulate(tasks.begin(), tasks.end(), 0.0);
}

double SharedCall::longest() const {
  return tasks.empty() ? 0 : *std::max_element(tasks.begin(), tasks.end());
}

SharedProfile profile_tasks(ObjectRunner& runner, const firn_executor* pool, size_t threads, double seconds) {
  TaskClock clock(runner.stamps(), pool, threads);
  runner.lend(clock.executor());
  std::vector<TimedRun> runs;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (runs.size() < 5 || (Clock::now() < end && runs.size() < kMaxRuns)) {
    auto start = Clock::now();
    runner.run_again();
    double taken = seconds_since(start);
    TimedRun run{{}, clock.take_calls()};
    const std::vector<uint64_t>& stamps = runner.stamps();
    double cycles = std::max(1.0, static_cast<double>(stamps.back() - stamps.front()));
    for (size_t i = 0; i + 1 < stamps.size(); ++i)
      run.steps.push_back(static_cast<double>(stamps[i + 1] - stamps[i]) / cycles * taken);
    runs.push_back(std::move(run));
  }
  runner.lend(nullptr);
  return medians(std::move(runs));
}

double measure_barrier(size_t threads) {
  ThreadPool pool(std::clamp<size_t>(threads, 1, std::max(1u, std::thread::hardware_concurrency())));
  firn_executor executor = pool.executor();
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    auto start = Clock::now();
    executor.parallel_for(
        executor.context, threads, [](void*, size_t) {}, nullptr);
    times.push_back(seconds_since(start));
  }
  return median(std::move(times));
}

} // namespace firn::driver
