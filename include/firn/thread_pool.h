// A pool of threads that models share their work among, for programs without a pool of their own:
//
//   firn::ThreadPool pool(4);
//   firn::Executor executor(pool);
//   model.run(executor);
//
// Any number of models may use one pool, one run at a time: while the pool is at work, or when one of its own
// threads asks, tasks run on the caller. Between runs its threads spin for a moment and then sleep. It
// allocates nothing after its construction. As C11 too; needs POSIX threads, and computes on the caller alone
// where there are none.
#ifndef FIRN_THREAD_POOL_H
#define FIRN_THREAD_POOL_H

#include "firn/abi.h"

#ifdef __cplusplus
#include "firn/model.h"

namespace firn {
inline namespace rt2 {

class ThreadPool {
public:
  // See firn_rt2_thread_pool_create().
  FIRN_HIDDEN explicit ThreadPool(std::size_t threads = 0, bool pinned = false) noexcept
      : pool_(firn_rt2_thread_pool_create(threads, pinned)) {}
  FIRN_HIDDEN ~ThreadPool() noexcept { firn_rt2_thread_pool_destroy(pool_); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // How many threads work at the same time, the caller's among them.
  FIRN_HIDDEN std::size_t concurrency() const noexcept { return executor().concurrency; }
  FIRN_HIDDEN firn_executor executor() const noexcept { return firn_rt2_thread_pool_executor(pool_); }

private:
  firn_rt2_thread_pool* pool_;
};

} // namespace rt2
} // namespace firn
#endif

#endif
