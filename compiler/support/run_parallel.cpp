// The calling thread works, too, so that work is done even where the system gives no further thread.
#include "compiler/support/run_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace firn {
namespace {

class Threads {
public:
  explicit Threads(size_t count, const std::function<void()>& work) {
    threads_.reserve(count);
    try {
      while (threads_.size() < count) threads_.emplace_back(work);
    } catch (const std::system_error&) {
      // The threads that there are do the work.
    }
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  Threads(const Threads&) = delete;

private:
  std::vector<std::thread> threads_;
};

} // namespace

void run_parallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work) {
  if (jobs == 0) jobs = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next = 0;
  auto take_items = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    Threads others(std::min<size_t>(jobs, count) - (count > 0 ? 1 : 0), take_items);
    take_items();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

} // namespace firn
