// The table of GPUs: rows that agree with each other and with their maker's limits, and what finds them.
#include "compiler/target/gpu_table.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace firn {

TEST_CASE("rows are sorted, and each part is there once") {
  std::set<std::string_view> parts;
  int last = 0;
  for (const GpuRow& row : gpu_table()) {
    INFO(row.part);
    CHECK(row.sm >= last);
    last = row.sm;
    CHECK(parts.insert(row.part).second);
    CHECK(std::all_of(row.part.begin(), row.part.end(),
                      [](unsigned char c) { return std::islower(c) || std::isdigit(c); }));
    CHECK(row.facts.part.empty());
    CHECK(row.facts.sm == 0);
  }
  std::set<int> sms;
  for (const GpuRow& row : gpu_table()) sms.insert(row.sm);
  CHECK(sms == std::set{75, 80, 86, 89, 90, 100, 120});
}

TEST_CASE("facts of a row agree with each other") {
  for (const GpuRow& row : gpu_table()) {
    INFO(row.part);
    const GpuFacts& gpu = row.facts;
    CHECK((gpu.sms >= 1 && gpu.sms <= 256));
    // The largest block fits an SM, and as many of the smallest as may be there.
    CHECK(gpu.warps_per_sm * kWarpThreads >= kMaxBlockThreads);
    CHECK(gpu.blocks_per_sm * 2 >= gpu.warps_per_sm / 2);
    CHECK(gpu.blocks_per_sm <= gpu.warps_per_sm);
    CHECK(gpu.shared_bytes_per_block <= gpu.shared_bytes_per_sm);
    CHECK(gpu.shared_bytes_per_sm - gpu.shared_bytes_per_block <= 1024);
    CHECK(gpu.shared_bytes_per_block % 1024 == 0);
    CHECK(gpu.registers_per_sm == 65536);
    CHECK((gpu.registers_per_thread > 128 && gpu.registers_per_thread < 256));
    // Each narrower type is multiplied at least as fast.
    CHECK(gpu.fma_per_cycle > 0);
    CHECK(gpu.half_per_cycle >= 2 * gpu.fma_per_cycle);
    CHECK(gpu.bytes_per_cycle == 2 * gpu.half_per_cycle);
    CHECK((row.sm == 75) == (gpu.tf32_per_cycle == 0));
    CHECK(gpu.tf32_per_cycle <= gpu.half_per_cycle / 2);
    CHECK((gpu.gigahertz > 0.5 && gpu.gigahertz < 4));
    CHECK(gpu.l2_bytes >= gpu.shared_bytes_per_sm * 4);
    CHECK((gpu.memory_gigabytes_per_second > 100 && gpu.memory_gigabytes_per_second < 20000));
  }
}

TEST_CASE("parts of one compute capability share its limits") {
  std::map<int, const GpuFacts*> first;
  for (const GpuRow& row : gpu_table()) {
    INFO(row.part);
    const GpuFacts& other = *first.try_emplace(row.sm, &row.facts).first->second;
    CHECK(row.facts.warps_per_sm == other.warps_per_sm);
    CHECK(row.facts.blocks_per_sm == other.blocks_per_sm);
    CHECK(row.facts.shared_bytes_per_sm == other.shared_bytes_per_sm);
    CHECK(row.facts.fma_per_cycle == other.fma_per_cycle);
    CHECK(row.facts.half_per_cycle == other.half_per_cycle);
  }
}

TEST_CASE("rates are those that makers publish") {
  // TFLOP/s of f32, and of f16 by matrix instructions, two for a product and its addition.
  struct Published {
    const char* name;
    double f32, f16;
  };
  for (auto [name, f32, f16] : {Published{"sm_75:t4", 8.1, 65}, Published{"sm_80:a100", 19.5, 312},
                                Published{"sm_86:rtx3090", 35.6, 71}, Published{"sm_89:rtx4090", 82.6, 165},
                                Published{"sm_90:h100", 66.9, 989}}) {
    INFO(name);
    auto machine = find_gpu(name);
    REQUIRE(machine);
    const GpuFacts& gpu = *machine->gpu;
    const double cycles = 2e-3 * gpu.sms * gpu.gigahertz;
    CHECK(cycles * gpu.fma_per_cycle == Approx(f32).epsilon(0.1));
    CHECK(cycles * gpu.half_per_cycle == Approx(f16).epsilon(0.1));
  }
}

TEST_CASE("a GPU is found by its compute capability, with or without a part") {
  for (const GpuRow& row : gpu_table()) {
    const std::string sm = "sm_" + std::to_string(row.sm);
    auto found = find_gpu(sm + ":" + std::string(row.part));
    REQUIRE(found);
    CHECK(found->arch == Arch::Nvptx);
    CHECK(found->triple == "nvptx64-nvidia-cuda");
    CHECK(found->pointer_bits == 64);
    CHECK(found->display_name() == sm);
    REQUIRE(found->gpu);
    CHECK(found->gpu->part == row.part);
    CHECK(found->gpu->sm == row.sm);
    CHECK(found->gpu->sms == row.facts.sms);
    // Threads run scalar code.
    CHECK(found->cpu.vector_bits == 0);
    CHECK_FALSE(found->cpu.has_caches());
    CHECK(found->processor == (row.sm == 75 ? "sm_75" : "sm_80"));
    auto first = find_gpu(sm);
    REQUIRE(first);
    auto is_same = [&](const GpuRow& other) { return other.sm == row.sm; };
    CHECK(first->gpu->part == std::find_if(gpu_table().begin(), gpu_table().end(), is_same)->part);
  }
}

TEST_CASE("unknown GPUs are told what there is") {
  auto message = [](const char* name) {
    auto found = find_gpu(name);
    REQUIRE_FALSE(found);
    CHECK(found.error().fault == Fault::Usage);
    return found.error().message;
  };
  CHECK(message("sm_81") == "GPU 'sm_81' is not known; did you mean 'sm_80', 'sm_86' or 'sm_89'?");
  CHECK(message("sm_80:a10") == "GPU 'sm_80:a10' is not known; did you mean 'sm_80:a100'?");
  CHECK(message("sm_86:a100") == "GPU 'sm_86:a100' is not known; did you mean 'sm_80:a100' or 'sm_86:a10'?");
  CHECK_THAT(message("frobnicator"), Catch::Contains("choices: sm_75, sm_75:t4, sm_75:rtx2080ti, sm_80, ") &&
                                         Catch::EndsWith("sm_120, sm_120:rtx5090"));
  CHECK_THAT(message(""), Catch::Contains("choices: "));
  message("sm_80:");
  message("SM_80");
  message("sm_80:A100");
}

} // namespace firn
