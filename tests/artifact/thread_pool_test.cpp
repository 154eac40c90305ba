// The pool of threads: every task once, whoever asks, however long its threads have slept.
#include <firn/thread_pool.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace {

void run(const firn_executor& executor, std::size_t count, firn_task task, void* data) {
  executor.parallel_for(executor.context, count, task, data);
}

using Counts = std::vector<std::atomic<int>>;

void count_task(void* data, std::size_t index) {
  ++(*static_cast<Counts*>(data))[index];
}

void expect_each_once(const firn_executor& executor, std::size_t count) {
  Counts counts(count);
  run(executor, count, count_task, &counts);
  for (const std::atomic<int>& times : counts) CHECK(times == 1);
}

// Tasks that wait for each other until all are at work.
struct Meeting {
  std::atomic<std::size_t> arrived{0};
  std::size_t wanted = 0;
};
void meet(void* data, std::size_t) {
  auto* meeting = static_cast<Meeting*>(data);
  ++meeting->arrived;
  while (meeting->arrived < meeting->wanted) std::this_thread::yield();
}

} // namespace

TEST_CASE("a pool runs every task once") {
  for (std::size_t threads : {1, 2, 3, 5}) {
    firn::ThreadPool pool(threads);
    CHECK(pool.concurrency() == threads);
    CHECK(firn::Executor(pool).c_executor()->concurrency == threads);
    for (std::size_t count : {0, 1, 2, 3, 7, 1000}) expect_each_once(pool.executor(), count);
  }
  CHECK(firn::ThreadPool().concurrency() >= 1);
}

TEST_CASE("a pool's threads work at the same time") {
  firn::ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    Meeting meeting;
    meeting.wanted = 4;
    run(pool.executor(), 4, meet, &meeting);
    CHECK(meeting.arrived == 4);
  }
}

TEST_CASE("threads that sleep are woken") {
  firn::ThreadPool pool(3, /*pinned=*/true);
  for (int milliseconds : {0, 1, 20}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    Meeting meeting;
    meeting.wanted = 3;
    run(pool.executor(), 3, meet, &meeting);
    CHECK(meeting.arrived == 3);
  }
}

TEST_CASE("many short jobs follow each other") {
  firn::ThreadPool pool(3);
  std::atomic<long> sum{0};
  for (int job = 0; job < 20000; ++job)
    run(
        pool.executor(), 3,
        [](void* data, std::size_t index) {
          static_cast<std::atomic<long>*>(data)->fetch_add(static_cast<long>(index + 1),
                                                           std::memory_order_relaxed);
        },
        &sum);
  CHECK(sum == 20000 * 6);
}

TEST_CASE("a pool that is busy lets the caller work") {
  firn::ThreadPool pool(3);
  const firn_executor executor = pool.executor();
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 2000; ++job) {
        Counts counts(5);
        run(executor, 5, count_task, &counts);
        for (const std::atomic<int>& times : counts) wrong += times != 1;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("a task may ask its own pool") {
  firn::ThreadPool pool(3);
  static firn_executor executor;
  executor = pool.executor();
  std::atomic<int> runs{0};
  run(
      executor, 3,
      [](void* data, std::size_t) {
        run(
            executor, 4, [](void* inner, std::size_t) { ++*static_cast<std::atomic<int>*>(inner); }, data);
      },
      &runs);
  CHECK(runs == 12);
}

namespace {

// Tasks that wait for each other again and again; what one writes in a round all read in the next.
struct Rounds {
  static constexpr int kCount = 200;
  std::size_t tasks = 0;
  std::atomic<std::size_t> arrived{0};
  std::vector<long> values;
  std::atomic<int> wrong{0};
};
void take_rounds(void* data, std::size_t index) {
  auto* rounds = static_cast<Rounds*>(data);
  for (long round = 0; round < Rounds::kCount; ++round) {
    rounds->values[index] = round;
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t wanted = (2 * static_cast<std::size_t>(round) + half + 1) * rounds->tasks;
      ++rounds->arrived;
      while (rounds->arrived < wanted) std::this_thread::yield();
      for (std::size_t i = 0; half == 0 && i < rounds->tasks; ++i)
        rounds->wrong += rounds->values[i] != round;
    }
  }
}

int run_together(const firn_executor& executor, std::size_t count, firn_task task, void* data) {
  return executor.parallel_together(executor.context, count, task, data);
}

} // namespace

TEST_CASE("tasks that run together wait for each other") {
  for (std::size_t threads : {1, 2, 3, 5}) {
    firn::ThreadPool pool(threads);
    for (std::size_t tasks = 1; tasks <= threads; ++tasks) {
      Rounds rounds;
      rounds.tasks = tasks;
      rounds.values.resize(tasks);
      CHECK(run_together(pool.executor(), tasks, take_rounds, &rounds) != 0);
      CHECK(rounds.wrong == 0);
      CHECK(rounds.arrived == 2 * Rounds::kCount * tasks);
    }
    Counts counts(threads + 1);
    CHECK(run_together(pool.executor(), threads + 1, count_task, &counts) == 0);
    for (const std::atomic<int>& times : counts) CHECK(times == 0);
    expect_each_once(pool.executor(), 7); // it is free again
  }
}

TEST_CASE("a pool at work runs nothing together") {
  firn::ThreadPool pool(3);
  static firn_executor executor;
  executor = pool.executor();
  std::atomic<int> runs{0};
  auto ask = [](void* data, std::size_t) {
    auto count = [](void* inner, std::size_t) { ++*static_cast<std::atomic<int>*>(inner); };
    if (run_together(executor, 2, count, data) != 0) ++*static_cast<std::atomic<int>*>(data);
  };
  run(executor, 3, ask, &runs);
  CHECK(runs == 0);
  // Several callers: each has all of its tasks run, or none.
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job) {
        Meeting meeting;
        meeting.wanted = 3;
        const bool ran = run_together(executor, 3, meet, &meeting) != 0;
        wrong += meeting.arrived != (ran ? 3u : 0u);
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("no pool is a thread alone") {
  const firn_executor executor = firn_rt2_thread_pool_executor(nullptr);
  CHECK(executor.parallel_together == nullptr);
  CHECK(executor.concurrency == 1);
  CHECK(executor.size == sizeof executor);
  firn_rt2_thread_pool_destroy(nullptr);
}
