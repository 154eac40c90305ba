// Kernels whose extents are arguments: strides, ends of loops and the parallel count follow them.
#include "tests/codegen/model_object.h"

#include "compiler/kernel/passes/pass.h"

#include <catch2/catch.hpp>

#include <numeric>

namespace firn::test {

using namespace kernel;

// y[i][j] = 10 * x[i][j] for i < n, j < m, which lie at actual strides; two calls, of which the second has
// the first half of the rows, rounded up, only. `tasks` of the parallel loop over pairs of rows.
static Program parse_rows(int tasks) {
  std::string text = R"(
program "p" arena 0 lower_bound 0 weights 0 {
  extent n [0, 9]
  extent m [1, 5]
  buffer "x" input 0 bytes 180 align 4
  buffer "y" output 0 bytes 180 align 4
  buffer "z" output 1 bytes 180 align 4
  call 0 (0, 1) extents (n, m)
  call 0 (0, 2) extents ((n + 1) floordiv 2, m)
}
kernel "rows" {
  parameter "x" i32[45] align 4
  parameter "y" i32[45] align 4 written
  extent n [0, 9]
  extent m [1, 5]
  parallel p [0, 4] count ((n + 1) floordiv 2) tasks )" +
                     std::to_string(tasks) + R"(
  %0: i32 = const [10]
  for from (2*p) to (min(n, 2*p + 2)) as i [0, 8] () {
    for from (0) to (m) as j [0, 4] unroll 2 () {
      %1: i32 = load b0[i*m + j]
      %2: i32 = imul %1 %0
      store %2 b1[i*m + j]
      yield
    }
    yield
  }
}
)";
  auto program = parse_program("extents.kir", text);
  if (!program) FAIL(program.error().message);
  return std::move(*program);
}

static Program make_program(int tasks) {
  Program program = parse_rows(tasks);
  make_entry(program, KernelPassOptions());
  if (Result result = verify(program); !result) FAIL(result.error().message);
  return program;
}

static void check(const LoadedObject& object, size_t n, size_t m, const firn_executor* executor) {
  std::vector<int32_t> x(45), y(45, -1), z(45, -1);
  std::iota(x.begin(), x.end(), 1);
  INFO(n << " x " << m);
  REQUIRE(object.run({x.data()}, {y.data(), z.data()}, nullptr, nullptr, {n, m}, executor) == 0);
  for (size_t i = 0; i < 45; ++i) {
    CHECK(y[i] == (i < n * m ? 10 * x[i] : -1));
    CHECK(z[i] == (i < (n + 1) / 2 * m ? 10 * x[i] : -1));
  }
}

TEST_CASE("extents reach kernels, and nothing beyond them is touched") {
  LoadedObject object(make_program(1), options_for(host_target()));
  for (size_t n = 0; n <= 9; ++n)
    for (size_t m = 1; m <= 5; ++m) check(object, n, m, nullptr);
}

// Runs tasks backwards, and counts them.
static size_t tasks_run = 0;
static void run_backwards(void*, size_t count, firn_task task, void* data) {
  tasks_run += count;
  while (count > 0) task(data, --count);
}

TEST_CASE("extents reach tasks") {
  LoadedObject object(make_program(4), options_for(host_target()));
  firn_executor executor{sizeof(firn_executor), nullptr, 3, run_backwards, nullptr};
  for (size_t n = 0; n <= 9; ++n)
    for (size_t m : {1, 4}) check(object, n, m, &executor);
  for (auto [n, tasks] : {std::pair<size_t, size_t>{0, 0}, {1, 2}, {4, 3}, {9, 6}}) {
    tasks_run = 0;
    check(object, n, 5, &executor);
    CHECK(tasks_run == tasks);
  }
}

TEST_CASE("a run refuses extents beyond their bounds") {
  LoadedObject object(make_program(1), options_for(host_target()));
  std::vector<int32_t> x(45), y(45, -1), z(45, -1);
  for (auto [n, m] : {std::pair<size_t, size_t>{10, 1}, {9, 0}, {9, 6}, {~size_t{0}, 3}}) {
    CHECK(object.run({x.data()}, {y.data(), z.data()}, nullptr, nullptr, {n, m}) == FIRN_STATUS_OUT_OF_RANGE);
    CHECK(y == std::vector<int32_t>(45, -1));
  }
}

TEST_CASE("kernels with extents compile for every architecture") {
  for (const char* triple :
       {"x86_64-linux-gnu", "aarch64-linux-gnu", "armv7em-none-eabi", "riscv64-linux-gnu"}) {
    Machine target = target_of(triple, "");
    TemporaryFolder folder;
    auto facts = codegen::emit_object(make_program(4), options_for(target), folder.file("model.o"));
    if (!facts) FAIL(triple << ": " << facts.error().message);
  }
}

TEST_CASE("a program whose steps leave something unsaid is refused") {
  TemporaryFolder folder;
  auto facts = codegen::emit_object(parse_rows(1), options_for(host_target()), folder.file("model.o"));
  REQUIRE(!facts);
  CHECK(facts.error().fault == Fault::Internal);
  CHECK(facts.error().message.find("make-entry has not run") != std::string::npos);
}

} // namespace firn::test
