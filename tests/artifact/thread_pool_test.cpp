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

TEST_CASE("no pool is a thread alone") {
  const firn_executor executor = firn_rt2_thread_pool_executor(nullptr);
  CHECK(executor.concurrency == 1);
  CHECK(executor.size == sizeof executor);
  firn_rt2_thread_pool_destroy(nullptr);
}
