// Fixed threads that wait for jobs. A job is published by one word that holds its number and the next task to
// take: whoever takes a task does so by a compare-and-swap on that word, so that a thread that wakes late
// finds a newer number or no task left, and touches nothing.
#include "firn/abi.h"

#if defined(__unix__) || defined(__APPLE__)
#define FIRN_HAS_THREADS 1
#endif

#ifdef FIRN_HAS_THREADS

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

namespace {

// Rounds of waiting before a thread sleeps: some tens of microseconds, longer than a step that is not shared.
constexpr int kSpins = 1 << 14;
// Tasks are numbered in the low half of the word that publishes a job.
constexpr std::uint64_t kTaskBits = 32, kTaskMask = (std::uint64_t{1} << kTaskBits) - 1;

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#endif
}

// The pool that this thread belongs to, or whose job it is sharing.
thread_local const firn_rt2_thread_pool* current_pool = nullptr;

} // namespace

struct firn_rt2_thread_pool {
  // Each has a cache line of its own: it is written at every task, and read by all threads while they wait.
  alignas(64) std::atomic<std::uint64_t> job{0}; // number << 32 | next task
  alignas(64) std::atomic<std::size_t> finished{0};
  alignas(64) std::atomic<firn_task> task{nullptr};
  std::atomic<void*> data{nullptr};
  std::atomic<std::size_t> count{0};
  std::atomic<bool> busy{false}, ends{false};
  std::atomic<int> sleepers{0};
  std::size_t workers = 0; // threads beside the caller's
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wakes = PTHREAD_COND_INITIALIZER;
  pthread_t* threads = nullptr;

  // Takes tasks of job `number` until there are none.
  void take_tasks(std::uint64_t number) {
    std::uint64_t at = job.load(std::memory_order_acquire);
    while (at >> kTaskBits == number) {
      const std::size_t index = static_cast<std::size_t>(at & kTaskMask);
      const firn_task function = task.load(std::memory_order_acquire);
      void* const argument = data.load(std::memory_order_acquire);
      if (index >= count.load(std::memory_order_acquire)) return;
      // The values read belong to this job if the word has not changed: share() makes it a word without tasks
      // before it writes those of the next job.
      if (!job.compare_exchange_weak(at, at + 1, std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      function(argument, index);
      finished.fetch_add(1, std::memory_order_release);
      at = job.load(std::memory_order_acquire);
    }
  }

  // Waits for a job after number `last`; its number, or `last` if the pool ends.
  std::uint64_t await_job(std::uint64_t last) {
    for (int spins = 0; spins < kSpins; ++spins) {
      const std::uint64_t number = job.load(std::memory_order_acquire) >> kTaskBits;
      if (number != last) return number;
      if (ends.load(std::memory_order_relaxed)) return last;
      pause_briefly();
    }
    pthread_mutex_lock(&mutex);
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::uint64_t number;
    while ((number = job.load(std::memory_order_seq_cst) >> kTaskBits) == last &&
           !ends.load(std::memory_order_relaxed))
      pthread_cond_wait(&wakes, &mutex);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
    pthread_mutex_unlock(&mutex);
    return number;
  }

  void wake() {
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&wakes);
    pthread_mutex_unlock(&mutex);
  }

  void run(std::size_t tasks, firn_task function, void* argument) {
    if (tasks > 1 && workers > 0 && share(tasks, function, argument)) return;
    for (std::size_t i = 0; i < tasks; ++i) function(argument, i);
  }

  // Runs tasks that may wait for each other, which needs a thread for each. All threads are free if share()
  // succeeds, and a thread with a waiting task takes no other.
  bool run_together(std::size_t tasks, firn_task function, void* argument) {
    return tasks <= workers + 1 && share(tasks, function, argument);
  }

  // Shares the tasks among all threads. False, with no task run, if the pool is busy or the caller runs a
  // task of a pool.
  bool share(std::size_t tasks, firn_task function, void* argument) {
    if (current_pool || busy.exchange(true, std::memory_order_acquire)) return false;
    current_pool = this;
    const std::uint64_t last = job.load(std::memory_order_relaxed) >> kTaskBits;
    const std::uint64_t number = (last + 1) & kTaskMask;
    job.store(last << kTaskBits | kTaskMask, std::memory_order_relaxed); // no task left
    task.store(function, std::memory_order_release);
    data.store(argument, std::memory_order_release);
    count.store(tasks, std::memory_order_release);
    finished.store(0, std::memory_order_relaxed);
    job.store(number << kTaskBits, std::memory_order_seq_cst);
    wake();
    take_tasks(number);
    while (finished.load(std::memory_order_acquire) != tasks) pause_briefly();
    current_pool = nullptr;
    busy.store(false, std::memory_order_release);
    return true;
  }

  void work() {
    current_pool = this;
    std::uint64_t last = 0;
    for (;;) {
      const std::uint64_t number = await_job(last);
      if (number == last) return;
      last = number;
      take_tasks(number);
    }
  }
};

namespace {

std::size_t processors_online() {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<std::size_t>(count) : 1;
}

#if defined(__linux__)
std::size_t available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(CPU_COUNT(&set));
  return processors_online(); // there are more than the set has room for
}

// Keeps a thread on processor `number`, from 0 on and cyclically, of those that the process may use. Numbers
// of workers begin at 1, so that processor 0 is left to the caller.
void pin(pthread_t thread, std::size_t number) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::size_t seen = 0, wanted = number % static_cast<std::size_t>(CPU_COUNT(&allowed));
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != wanted) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(thread, sizeof one, &one);
    return;
  }
}
#else
std::size_t available_processors() {
  return processors_online();
}
void pin(pthread_t, std::size_t) {}
#endif

void* start_work(void* pool) {
  static_cast<firn_rt2_thread_pool*>(pool)->work();
  return nullptr;
}

void run_in_pool(void* pool, std::size_t count, firn_task task, void* data) {
  static_cast<firn_rt2_thread_pool*>(pool)->run(count, task, data);
}

int run_together_in_pool(void* pool, std::size_t count, firn_task task, void* data) {
  return static_cast<firn_rt2_thread_pool*>(pool)->run_together(count, task, data) ? 1 : 0;
}

} // namespace

extern "C" firn_rt2_thread_pool* firn_rt2_thread_pool_create(size_t threads, int pinned) FIRN_NOEXCEPT {
  if (threads == 0) threads = available_processors();
  if (threads > SIZE_MAX / sizeof(pthread_t)) return nullptr;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(firn_rt2_thread_pool), sizeof(firn_rt2_thread_pool)) != 0)
    return nullptr;
  auto* pool = new (memory) firn_rt2_thread_pool;
  pool->threads = static_cast<pthread_t*>(malloc(threads * sizeof(pthread_t)));
  if (!pool->threads) {
    free(memory);
    return nullptr;
  }
  while (pool->workers + 1 < threads &&
         pthread_create(&pool->threads[pool->workers], nullptr, start_work, pool) == 0) {
    ++pool->workers;
    if (pinned) pin(pool->threads[pool->workers - 1], pool->workers);
  }
  return pool;
}

extern "C" void firn_rt2_thread_pool_destroy(firn_rt2_thread_pool* pool) FIRN_NOEXCEPT {
  if (!pool) return;
  pthread_mutex_lock(&pool->mutex);
  pool->ends.store(true, std::memory_order_relaxed);
  pthread_cond_broadcast(&pool->wakes);
  pthread_mutex_unlock(&pool->mutex);
  for (std::size_t i = 0; i < pool->workers; ++i) pthread_join(pool->threads[i], nullptr);
  free(pool->threads);
  pool->~firn_rt2_thread_pool();
  free(pool);
}

extern "C" firn_executor firn_rt2_thread_pool_executor(firn_rt2_thread_pool* pool) FIRN_NOEXCEPT {
  firn_executor executor = {sizeof(firn_executor), pool, pool ? pool->workers + 1 : 1, run_in_pool,
                            pool ? run_together_in_pool : nullptr};
  return executor;
}

#else // no threads

extern "C" firn_rt2_thread_pool* firn_rt2_thread_pool_create(size_t, int) FIRN_NOEXCEPT {
  return nullptr;
}
extern "C" void firn_rt2_thread_pool_destroy(firn_rt2_thread_pool*) FIRN_NOEXCEPT {}
extern "C" firn_executor firn_rt2_thread_pool_executor(firn_rt2_thread_pool*) FIRN_NOEXCEPT {
  firn_executor executor = {sizeof(firn_executor), nullptr, 1, nullptr, nullptr};
  return executor;
}

#endif
