// Threads for independent items.
#include "compiler/support/diagnostic.h"
#include "compiler/support/run_parallel.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <vector>

namespace firn {

TEST_CASE("every item of parallel work is done once") {
  for (unsigned jobs : {0u, 1u, 3u, 100u})
    for (size_t count : {0, 1, 2, 50}) {
      std::vector<std::atomic<int>> done(count);
      run_parallel(count, jobs, [&](size_t i) { ++done[i]; });
      for (const auto& times : done) CHECK(times == 1);
    }
  std::atomic<int> done = 0;
  std::string failure;
  try {
    run_parallel(20, 3, [&](size_t i) {
      ++done;
      FIRN_CHECK(i % 7 != 3, "item " + std::to_string(i));
    });
  } catch (const InternalFailure& thrown) {
    failure = thrown.message();
  }
  CHECK(done == 20);
  CHECK(failure.ends_with("item 3"));
}

} // namespace firn
