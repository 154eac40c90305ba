// The runtime: the CPU check, messages, placement of arenas, executors.
#include "firn/cpu_features.h"
#include "firn/model.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

TEST_CASE("every status has a text") {
  for (int code = 0; code <= FIRN_STATUS_NO_TILES; ++code)
    CHECK(std::string(firn_rt2_status_message(code)) != "unknown status");
  CHECK(std::string(firn_rt2_status_message(200)) == "unknown status");
  CHECK(std::string(firn::Status().message()) == "ok");
}

TEST_CASE("a model for another architecture is refused, one for any is not") {
#if defined(__x86_64__)
  const int other = FIRN_ARCH_AARCH64;
#else
  const int other = FIRN_ARCH_X86_64;
#endif
  CHECK_FALSE(firn::Status(firn_rt2_check_cpu(other, 0)));
  CHECK(firn::Status(firn_rt2_check_cpu(FIRN_ARCH_OTHER, 0)));
}

#if defined(__x86_64__) && defined(__GNUC__)
TEST_CASE("the check agrees with the compiler's own on every feature it knows") {
  const auto has = [](int number) {
    return firn::Status(firn_rt2_check_cpu(FIRN_ARCH_X86_64, std::uint64_t{1} << number)).ok();
  };
  __builtin_cpu_init();
  CHECK(has(0) == (__builtin_cpu_supports("sse3") != 0));
  CHECK(has(3) == (__builtin_cpu_supports("sse4.2") != 0));
  CHECK(has(5) == (__builtin_cpu_supports("popcnt") != 0));
  CHECK(has(7) == (__builtin_cpu_supports("avx") != 0));
  CHECK(has(9) == (__builtin_cpu_supports("fma") != 0));
  CHECK(has(11) == (__builtin_cpu_supports("avx2") != 0));
  CHECK(has(12) == (__builtin_cpu_supports("bmi") != 0));
  CHECK(has(15) == (__builtin_cpu_supports("avx512f") != 0));
  CHECK(has(19) == (__builtin_cpu_supports("avx512vl") != 0));
  CHECK(has(20) == (__builtin_cpu_supports("avx512vnni") != 0));
  CHECK(has(21) == (__builtin_cpu_supports("avx512bf16") != 0));
  CHECK(has(29) == (__builtin_cpu_supports("gfni") != 0));
}

#if defined(__linux__)
// Linux itself says whether the process may use tile registers (arch_prctl), or does not know of them.
TEST_CASE("the check of AMX asks Linux for its registers") {
  constexpr long get_permission = 0x1022;
  constexpr std::uint64_t all_of_amx = std::uint64_t{7} << 30, tile_data = std::uint64_t{1} << 18;
  const firn::Status status(firn_rt2_check_cpu(FIRN_ARCH_X86_64, all_of_amx));
  std::uint64_t granted = 0;
  syscall(SYS_arch_prctl, get_permission, &granted);
  CHECK(status.ok() == ((granted & tile_data) != 0));
  const int code = status.code();
  CHECK((code == FIRN_STATUS_OK || code == FIRN_STATUS_NO_TILES || code == FIRN_STATUS_UNSUPPORTED_CPU));
}
#endif

TEST_CASE("a missing feature is named") {
  const firn::Status status(FIRN_STATUS_UNSUPPORTED_CPU | 15 << 8);
  CHECK(status.code() == FIRN_STATUS_UNSUPPORTED_CPU);
  CHECK(std::string(status.message()) == "the model needs AVX-512, which this CPU or operating system lacks");
  CHECK_FALSE(firn::Status(firn_rt2_check_cpu(FIRN_ARCH_X86_64, std::uint64_t{1} << 63)));
}
#endif

TEST_CASE("arenas are aligned inside the memory given, if there is room") {
  alignas(64) unsigned char memory[192];
  firn_status status = 0;
  CHECK(firn_rt2_place_arena(memory, 128, 128, 64, &status) == memory);
  CHECK(status == FIRN_STATUS_OK);
  CHECK(firn_rt2_place_arena(memory + 1, 128, 128, 64, &status) == nullptr);
  CHECK(status == FIRN_STATUS_ARENA_MISALIGNED);
  CHECK(firn_rt2_place_arena(memory + 1, 191, 128, 64, &status) == memory + 64);
  CHECK(firn_rt2_place_arena(memory, 127, 128, 64, &status) == nullptr);
  CHECK(status == FIRN_STATUS_ARENA_TOO_SMALL);
  CHECK(firn_rt2_place_arena(nullptr, 1000, 128, 64, &status) == nullptr);
  CHECK(status == FIRN_STATUS_NO_MEMORY);
}

TEST_CASE("an executor forwards to any callable") {
  std::vector<int> calls(5);
  auto pool = [](std::size_t count, auto task) {
    for (std::size_t i = count; i-- > 0;) task(i);
  };
  const firn::Executor executor(pool);
  const firn_executor* c = executor.c_executor();
  CHECK(c->size == sizeof(firn_executor));
  CHECK(c->concurrency == 0);
  CHECK(c->parallel_together == nullptr);
  c->parallel_for(
      c->context, calls.size(),
      [](void* data, std::size_t i) { ++(*static_cast<std::vector<int>*>(data))[i]; }, &calls);
  CHECK(calls == std::vector<int>{1, 1, 1, 1, 1});
}
