// A compiled model with tile matrices through its header. With GRANTED this program answers for the runtime's
// check of the CPU, and tile instructions are interpreted where there are none.
// usage: use_tiles [THREADS]
#include "expect.h"
#include "tests/codegen/tile_interpreter.h"
#include "tiles.h"

#include <firn/owned.h>
#include <firn/thread_pool.h>

#include <cstdlib>
#include <cstring>

#ifdef GRANTED
extern "C" firn_status firn_rt2_check_cpu(int32_t, uint64_t features) noexcept {
  constexpr uint64_t tiles = uint64_t{7} << 30;
  EXPECT((features & tiles) == tiles); // all of AMX that there is code for
  firn::test::interpret_tiles();
  return FIRN_STATUS_OK;
}
#endif

static void fill(test::Tiles& model) {
  for (int i = 0; i < 150 * 128; ++i) model.x().data()[i] = static_cast<std::uint8_t>(i * 37 % 251 + i % 5);
  for (int i = 0; i < 128 * 200; ++i) model.w().data()[i] = static_cast<std::int8_t>(i * 61 % 256 - 128);
}

static void expect_products(test::Tiles& model) {
  int wrong = 0;
  for (int m = 0; m < 150; ++m)
    for (int n = 0; n < 200; ++n) {
      std::int32_t sum = 0;
      for (int k = 0; k < 128; ++k) sum += model.x()(m, k) * model.w()(k, n);
      wrong += model.output_0()(m, n) != sum;
    }
  EXPECT(wrong == 0);
}

int main(int count, char** arguments) {
  firn::Owned<test::Tiles> model;
#ifdef GRANTED
  EXPECT(model->status());
#else
  // Without other code, a CPU or a system that has no tiles is refused by name.
  if (!model->status()) {
    const int code = model->status().code();
    EXPECT(code == FIRN_STATUS_NO_TILES || code == FIRN_STATUS_UNSUPPORTED_CPU);
    EXPECT(std::strstr(model->status().message(), "AMX"));
    EXPECT(!model->run());
    return failures;
  }
#endif
  fill(*model);
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  firn::test::take_tile_counts();
  if (threads > 1) {
    firn::ThreadPool pool(static_cast<std::size_t>(threads));
    firn::Executor executor(pool);
    EXPECT(model->run(executor));
  } else {
    EXPECT(model->run());
  }
  expect_products(*model);
  const firn::test::TileCounts counts = firn::test::take_tile_counts();
  if (firn::test::tiles_are_interpreted()) {
    EXPECT(counts.products == 10 * 13 * 2); // tiles of 15 rows, of 16 columns, of 64 steps
    // One for each task that has work, of which one thread may take all.
    EXPECT(counts.configurations == counts.releases && counts.releases >= 1);
    EXPECT(!firn::test::has_tile_configuration());
  }
  return failures;
}
