// spread-items: which items go to which threads, for GPUs of several sizes.
#include "compiler/kernel/passes/pass.h"
#include "compiler/target/gpu_table.h"
#include "tests/kernel/sample_kernels.h"

namespace firn::kernel {
namespace {

struct Spread {
  Program program;
  Result result;
  const Kernel& kernel() const { return *program.kernels[0]; }
};

// The pass on a program that calls one kernel with buffers x, y and scratch.
Spread spread(const std::string& kernel, const std::string& gpu = "sm_80:a100", int limit = -1) {
  auto program = parse_program(
      "t",
      "program \"p\" arena 4096 lower_bound 0 weights 0 {\nextent m [0, 4000]\nbuffer \"x\" input 0 bytes "
      "16000 align "
      "64\nbuffer \"y\" arena bytes 16000 align 64\nbuffer \"s\" arena bytes 72 align 64\ncall 0 (0, 1, 2)" +
          std::string(kernel.find("extent") == std::string::npos ? "" : " extents (m)") +
          "\n}\nkernel \"k\" at \"/net/node\" {\nparameter \"x\" f32[4000] align 64\nparameter \"y\" "
          "f32[4000] "
          "align 64 written\n" +
          kernel + "}\n");
  if (!program) FAIL(program.error().message);
  auto machine = find_gpu(gpu);
  REQUIRE(machine);
  Spread spread{std::move(*program), {}};
  KernelPipelineRun run{KernelPassOptions(kDefaultGoals, &*machine)};
  run.options.rewrite_limit = limit;
  spread.result = run_kernel_passes(spread.program, kGpuPasses, run);
  if (spread.result) spread.result = verify(spread.program);
  return spread;
}

const std::string kScratch = "parameter \"s\" f32[18] align 64 written\n",
                  kCopy = "%0: f32 = load b0[p]\nstore %0 b1[p]\n";

std::string items(int64_t count) {
  const std::string n = std::to_string(count);
  return "parallel p [0, " + std::to_string(count - 1) + "] count " + n + "\n";
}

} // namespace

TEST_CASE("an item goes to each thread") {
  Spread made = spread(kScratch + items(4000) + kCopy);
  REQUIRE(made.result);
  CHECK_THAT(print_kernel(made.kernel()),
             Catch::Contains("  parallel block [0, 124] count 125\n"
                             "  block_threads 32\n"
                             "  threads as t [0, 31] () {\n"
                             "    for from (32*block + t) to (32*block + t + 1) as p [0, 3999] () {\n"
                             "      %0: f32 = load b0[p]\n"
                             "      store %0 b1[p]\n"
                             "      yield\n"
                             "    }\n"
                             "    yield\n"
                             "  }\n"));
}

TEST_CASE("blocks are large where items fill the GPU so") {
  CHECK(spread(kScratch + items(4000) + kCopy, "sm_86:rtx3060").kernel().threads == 128); // 28 SMs
  CHECK(spread(kScratch + items(4000) + kCopy, "sm_120:rtx5090").kernel().threads == 32);
  CHECK(spread(kScratch + items(7) + kCopy).kernel().threads == 7);
  CHECK(spread(kScratch + items(7) + kCopy).kernel().max_iterations() == 1);
  Spread many =
      spread(kScratch + items(1 << 20) + "%0: f32 = load b0[p mod 4000]\nstore %0 b1[p mod 4000]\n");
  CHECK(many.kernel().threads == 256);
  CHECK(many.kernel().max_iterations() == 4096);
}

TEST_CASE("a kernel without items is one of a thread") {
  Spread made = spread(kScratch + "%0: f32 = load b0[0]\nstore %0 b1[0]\n");
  REQUIRE(made.result);
  CHECK(made.kernel().threads == 1);
  CHECK(made.kernel().parallel_count == 1);
}

TEST_CASE("a number of items that varies decides the number of blocks") {
  Spread made = spread(kScratch + "extent n [0, 4000]\nparallel p [0, 3999] count (n)\n" + kCopy);
  REQUIRE(made.result);
  CHECK_THAT(print_kernel(made.kernel()),
             Catch::Contains("count ((n + 31) floordiv 32)") &&
                 Catch::Contains("from (32*block + t) to (min(n, 32*block + t + 1)) as p"));
}

TEST_CASE("blocks of one thread have scratch of their own") {
  Spread made = spread("parameter \"s\" f32[18] align 64 written per_task\n" + items(4000) +
                       "%0: f32 = load b0[p]\nstore %0 b2[3]\n%1: f32 = load b2[3]\nstore %1 b1[p]\n");
  REQUIRE(made.result);
  CHECK(made.kernel().threads == 1);
  CHECK(made.kernel().max_iterations() == 64);
  CHECK(made.kernel().parameters[2].size == 64 * 32); // on lines of its own: 72 bytes take 128
  CHECK(made.program.buffers[2].bytes == 64 * 128);
  CHECK(made.program.buffers[1].bytes == 16000);
  CHECK_THAT(print_kernel(made.kernel()),
             Catch::Contains(
                 "from (62*block + (block floordiv 2)) to (62*block + ((block + 1) floordiv 2) + 62) as p") &&
                 Catch::Contains("store %0 b2[32*block + 3]"));
  CHECK(spread("parameter \"s\" f32[18] align 64 written per_task\n" + items(5) +
               "%0: f32 = load b0[p]\nstore %0 b2[3]\n")
            .kernel()
            .max_iterations() == 5);
}

TEST_CASE("promises of memory in place are taken back") {
  const std::string kernel = kScratch + "in_place b1 over b0 pointwise\n" + items(4000) + kCopy;
  Spread kept = spread(kernel, "sm_80", 0);
  CHECK(kept.kernel().threads == 0);
  CHECK(kept.kernel().in_place.size() == 1);
  CHECK(spread(kernel).kernel().in_place.empty());
}

TEST_CASE("code and data of the CPU are refused") {
  Spread call = spread(kScratch + items(4) + "%0: i64 = const [4]\ncall_runtime %0 firn_rt2_sort (b0, b1)\n");
  if (!call.result) {
    CHECK(call.result.error().fault == Fault::Unsupported);
    CHECK_THAT(call.result.error().message,
               Catch::Contains("/net/node: ") && Catch::Contains("is code of the CPU"));
  }
  Spread text = spread("parameter \"s\" i128[4] align 8\n" + items(4) + kCopy);
  REQUIRE_FALSE(text.result);
  CHECK(text.result.error().fault == Fault::Unsupported);
  CHECK_THAT(text.result.error().message, Catch::Contains("/net/node: strings lie in memory of the CPU"));
}

TEST_CASE("kernels of threads and CPUs are left alone") {
  Spread made =
      spread(kScratch + "parallel p [0, 3] count 4\nblock_threads 32\nthreads as t [0, 31] () {\nyield\n}\n");
  REQUIRE(made.result);
  CHECK(made.kernel().threads == 32);
  auto cpu = find_target("x86_64-linux-gnu", "x86-64-v3", "");
  REQUIRE(cpu);
  Program program = sample_program();
  KernelPipelineRun run{KernelPassOptions(kDefaultGoals, &*cpu)};
  REQUIRE(run_kernel_passes(program, kGpuPasses, run));
  CHECK(print_program(program) == print_program(sample_program()));
}

} // namespace firn::kernel
