// Two instances in two threads do not disturb each other.
#include "affine.h"

#include <firn/owned.h>

#include <atomic>
#include <thread>

static std::atomic<int> wrong{0};

static void work(float value, float expected) {
  firn::Owned<demo::Affine> affine;
  for (int round = 0; round < 20000; ++round) {
    for (float& feature : affine->features()) feature = value;
    if (!affine->run() || affine->scores()(0, 2) != expected) ++wrong;
  }
}

int main() {
  std::thread first(work, 0.0f, 2.0f), second(work, 1.0f, 2.0f + (-3 + 0 + 3 + 6) / 4.0f);
  first.join();
  second.join();
  return wrong == 0 ? 0 : 1;
}
