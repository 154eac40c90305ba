// Executors of every kind share one model's kernels, and give the bits that it computes alone.
// usage: lend_executors [SECONDS of two instances in two pools]
#include "shared.h"

#include <firn/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#ifdef WITH_TBB
#include <oneapi/tbb/parallel_for.h>
#endif

namespace {

int failures = 0;

// An instance with inputs of its own, and the results that it computes without an executor.
class Instance {
public:
  Instance() : arena_(std::make_unique<test::Shared::Arena>()), model_(*arena_) {
    fill(model_.x(), 1);
    fill(model_.w(), 2);
    fill(model_.v(), 3);
    if (!model_.run()) ++failures;
    alone_ = results();
  }

  bool agrees(firn::Executor& executor) {
    auto spoil = [](auto view) {
      std::memset(const_cast<float*>(view.data()), 0xff, view.size() * sizeof(float));
    };
    spoil(model_.output_0());
    spoil(model_.output_1());
    spoil(model_.output_2());
    spoil(model_.output_3());
    return bool(model_.run(executor)) && results() == alone_;
  }

private:
  template <class View> static void fill(View view, unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < view.size(); ++i)
      view.data()[i] = static_cast<float>(random() % 2000) / 20000.0f - 0.05f;
  }
  std::vector<unsigned char> results() const {
    std::vector<unsigned char> bytes;
    auto append = [&](auto view) {
      auto* first = reinterpret_cast<const unsigned char*>(view.data());
      bytes.insert(bytes.end(), first, first + view.size() * sizeof(float));
    };
    append(model_.output_0());
    append(model_.output_1());
    append(model_.output_2());
    append(model_.output_3());
    return bytes;
  }

  std::unique_ptr<test::Shared::Arena> arena_;
  test::Shared model_;
  std::vector<unsigned char> alone_;
};

template <class Pool> void expect_same(const char* name, Pool& pool) {
  Instance instance;
  firn::Executor executor(pool);
  for (int run = 0; run < 20; ++run) {
    if (instance.agrees(executor)) continue;
    std::printf("%s: run %d gives other results\n", name, run);
    ++failures;
    return;
  }
  std::printf("%s: same results\n", name);
}

// A program's own threads, which take jobs from a queue; they come late, and the last job first.
class JobSystem {
public:
  explicit JobSystem(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~JobSystem() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wakes_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  std::size_t concurrency() const { return threads_.size(); }

  template <class Task> void operator()(std::size_t count, Task task) {
    std::atomic<std::size_t> left{count};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (std::size_t i = 0; i < count; ++i)
        jobs_.push_back([&left, task, i] {
          std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
          task(i);
          --left;
        });
    }
    wakes_.notify_all();
    while (left > 0) std::this_thread::yield();
  }

private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      wakes_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      auto job = std::move(jobs_.back());
      jobs_.pop_back();
      lock.unlock();
      job();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::function<void()>> jobs_;
  bool ends_ = false;
};

// All tasks on the caller's thread, in an order of chance; so many are said to run at the same time.
struct Shuffled {
  std::size_t threads;
  std::mt19937 random;
  std::size_t concurrency() const { return threads; }
  template <class Task> void operator()(std::size_t count, Task task) {
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t index : order) task(index);
  }
};

// A task of the pool runs another model on the pool: that one computes on its caller, and nobody waits
// forever.
void expect_nested() {
  firn::ThreadPool pool(3);
  std::vector<Instance> instances(3);
  std::atomic<int> wrong{0};
  firn::Executor executor(pool);
  const firn_executor* lent = executor.c_executor();
  struct Data {
    std::vector<Instance>& instances;
    std::atomic<int>& wrong;
    firn::ThreadPool& pool;
  } data{instances, wrong, pool};
  lent->parallel_for(
      lent->context, instances.size(),
      [](void* given, std::size_t index) {
        auto* inside = static_cast<Data*>(given);
        firn::Executor same(inside->pool);
        if (!inside->instances[index].agrees(same)) ++inside->wrong;
      },
      &data);
  std::printf("models inside a task: %d wrong\n", wrong.load());
  failures += wrong;
}

// Two instances at the same time, each with a pool of its own.
void run_side_by_side(double seconds) {
  std::atomic<long> runs{0}, wrong{0};
  auto work = [&] {
    firn::ThreadPool pool(2);
    firn::Executor executor(pool);
    Instance instance;
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    do {
      if (!instance.agrees(executor)) ++wrong;
      ++runs;
    } while (std::chrono::steady_clock::now() < end);
  };
  std::thread other(work);
  work();
  other.join();
  std::printf("two instances in two pools: %ld runs, %ld wrong\n", runs.load(), wrong.load());
  failures += wrong > 0;
}

} // namespace

int main(int argc, char** argv) {
  for (std::size_t threads : {1, 2, 3, 5, 8}) {
    firn::ThreadPool pool(threads);
    expect_same("firn::ThreadPool", pool);
    Shuffled shuffled{threads, std::mt19937(7)};
    expect_same("one thread, any order", shuffled);
  }
  firn::ThreadPool pinned(2, true);
  expect_same("pinned firn::ThreadPool", pinned);
  JobSystem jobs(3);
  expect_same("a program's own job system", jobs);
  auto unknown = [](std::size_t count, auto task) {
    for (std::size_t i = 0; i < count; ++i) task(i);
  };
  expect_same("concurrency that is not known", unknown);
#ifdef _OPENMP
  auto openmp = [](std::size_t count, auto task) {
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < static_cast<long>(count); ++i) task(static_cast<std::size_t>(i));
  };
  expect_same("OpenMP", openmp);
#endif
#ifdef WITH_TBB
  auto onetbb = [](std::size_t count, auto task) { tbb::parallel_for(std::size_t(0), count, task); };
  expect_same("oneTBB", onetbb);
#endif
  expect_nested();
  run_side_by_side(argc > 1 ? std::atof(argv[1]) : 1);
  return failures ? 1 : 0;
}
