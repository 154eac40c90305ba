// One run shared by several threads: Firn's pool, a pool of the program's own, an executor in any order, all
// with the bits that a run alone gives; several instances on one pool; the C struct.
#include "smooth_shared.h"

#include <firn/thread_pool.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

using Model = demo::SmoothShared;

static const std::size_t bytes = sizeof(float) * 16 * 32 * 32;

static void fill(Model& model, float scale) {
  float* x = model.x().data();
  for (std::size_t i = 0; i < model.x().size(); ++i) x[i] = scale * static_cast<float>(i % 37) - 1;
}

struct OwnThreads {
  template <class Task> void operator()(std::size_t count, Task task) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(task, i);
    for (std::thread& thread : threads) thread.join();
  }
};

// Says that it has three threads, has none, and begins with the last task.
struct Backwards {
  std::size_t tasks = 0;
  std::size_t concurrency() const { return 3; }
  template <class Task> void operator()(std::size_t count, Task task) {
    tasks = std::max(tasks, count);
    for (std::size_t i = count; i-- > 0;) task(i);
  }
};

int main() {
  auto arena = std::make_unique<Model::Arena>();
  Model model(*arena);
  fill(model, 0.25f);
  if (!model.run()) return 1;
  std::vector<unsigned char> alone(bytes);
  std::memcpy(alone.data(), model.y().data(), bytes);
  auto same = [&](firn::Executor& executor) {
    std::memset(const_cast<float*>(model.y().data()), 0, bytes);
    return model.run(executor).ok() && std::memcmp(model.y().data(), alone.data(), bytes) == 0;
  };

  firn::ThreadPool pool(4);
  firn::Executor pooled(pool);
  OwnThreads own;
  firn::Executor owned(own);
  Backwards backwards;
  firn::Executor reversed(backwards);
  for (int i = 0; i < 50; ++i)
    if (!same(pooled)) return 2;
  if (!same(owned)) return 3;
  if (!same(reversed)) return 4;
  if (backwards.tasks != 3) return 5;
  const firn_executor executor = pool.executor();
  firn::Executor wrapped(executor);
  if (!same(wrapped)) return 6;

  // Two instances ask one pool at the same time.
  bool right[2] = {};
  auto use = [&](bool& ok) {
    auto memory = std::make_unique<Model::Arena>();
    Model instance(*memory);
    fill(instance, 0.25f);
    firn::Executor lent(pool);
    ok = true;
    for (int i = 0; i < 50; ++i)
      ok = ok && instance.run(lent).ok() && std::memcmp(instance.y().data(), alone.data(), bytes) == 0;
  };
  std::thread other([&] { use(right[0]); });
  use(right[1]);
  other.join();
  return right[0] && right[1] ? 0 : 7;
}
