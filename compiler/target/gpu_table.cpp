// Facts about GPUs as their maker publishes them: the CUDA C++ Programming Guide's table of technical
// specifications per compute capability for limits, the architecture whitepapers for rates, and data sheets
// for clocks and memory.
#include "compiler/target/gpu_table.h"

#include "compiler/support/nearest.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace firn {
namespace {

constexpr int64_t kKib = 1 << 10, kMib = 1 << 20;

// Facts that all parts of one compute capability have in common.
struct Generation {
  int warps, blocks;          // that one SM has at the same time
  int64_t shared;             // KiB of one SM
  int fma, tf32, half, bytes; // products that one SM adds in a cycle: FP32 pipes, then matrix instructions
};
constexpr Generation kTuring{32, 16, 64, 64, 0, 512, 1024};
constexpr Generation kAmpere{64, 32, 164, 64, 512, 1024, 2048};
constexpr Generation kAmpereSmall{48, 16, 100, 128, 128, 256, 512};
constexpr Generation kAda{48, 24, 100, 128, 128, 256, 512};
constexpr Generation kHopper{64, 32, 228, 128, 1024, 2048, 4096};
constexpr Generation kBlackwell{64, 32, 228, 128, 2048, 4096, 8192};
constexpr Generation kBlackwellSmall{48, 24, 100, 128, 128, 256, 512};

constexpr GpuRow row(std::string_view part, int sm, const Generation& generation, int sms, double ghz,
                     int64_t l2_mib, double gigabytes_per_second) {
  GpuFacts facts;
  facts.sms = sms;
  facts.warps_per_sm = generation.warps;
  facts.blocks_per_sm = generation.blocks;
  facts.shared_bytes_per_sm = generation.shared * kKib;
  // One KiB of each block's is the system's; Turing counts it elsewhere.
  facts.shared_bytes_per_block = (generation.shared - (sm > 75 ? 1 : 0)) * kKib;
  facts.fma_per_cycle = generation.fma;
  facts.tf32_per_cycle = generation.tf32;
  facts.half_per_cycle = generation.half;
  facts.bytes_per_cycle = generation.bytes;
  facts.gigahertz = ghz;
  facts.l2_bytes = l2_mib * kMib;
  facts.memory_gigabytes_per_second = gigabytes_per_second;
  return {part, sm, facts};
}

constexpr std::array kRows{
    row("t4", 75, kTuring, 40, 1.59, 4, 320),
    row("rtx2080ti", 75, kTuring, 68, 1.545, 5, 616),
    row("a100", 80, kAmpere, 108, 1.41, 40, 1555),
    row("a30", 80, kAmpere, 56, 1.44, 24, 933),
    row("a10", 86, kAmpereSmall, 72, 1.695, 6, 600),
    row("rtx3090", 86, kAmpereSmall, 82, 1.695, 6, 936),
    row("rtx3060", 86, kAmpereSmall, 28, 1.777, 3, 360),
    row("l4", 89, kAda, 58, 2.04, 48, 300),
    row("l40s", 89, kAda, 142, 2.52, 96, 864),
    row("rtx4090", 89, kAda, 128, 2.52, 72, 1008),
    row("h100", 90, kHopper, 132, 1.83, 50, 3350),
    row("h200", 90, kHopper, 132, 1.83, 50, 4800),
    row("b200", 100, kBlackwell, 148, 1.85, 126, 8000),
    row("rtx5090", 120, kBlackwellSmall, 170, 2.41, 96, 1792),
};

// A thread as a CPU without vectors. Code for a thread needs no library for what the hardware lacks, as LLVM
// has code for all of it, and sees no cache that it could prefetch into.
CpuFacts thread_facts() {
  CpuFacts cpu;
  cpu.vector_bits = 0;
  cpu.vector_registers = 64; // the others of 255 hold addresses, and what the loads ahead bring
  cpu.integer_registers = 32;
  cpu.has_f16_conversion = true;
  cpu.fma_pipes = 1;
  cpu.loads_per_cycle = 1;
  cpu.l1_bytes = cpu.l2_bytes = cpu.l3_bytes = 0;
  return cpu;
}

Diagnostic unknown_gpu(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const GpuRow& row : gpu_table()) {
    const std::string sm = "sm_" + std::to_string(row.sm);
    if (names.empty() || !names.back().starts_with(sm))
      names.push_back(sm), list += (list.empty() ? "" : ", ") + sm;
    names.push_back(sm + ":" + std::string(row.part));
    list += ", " + names.back();
  }
  const std::string near = nearest_words(std::string(name), names);
  return usage_error("GPU '" + std::string(name) + "' is not known" +
                     (near.empty() ? "; choices: " + list : "; did you mean " + near + "?"));
}

} // namespace

std::span<const GpuRow> gpu_table() {
  return kRows;
}

int64_t resident_blocks(const GpuFacts& gpu, int threads, int registers_per_thread, int64_t shared_bytes) {
  const int warps = (threads + kWarpThreads - 1) / kWarpThreads;
  int64_t blocks = std::min(gpu.blocks_per_sm, gpu.warps_per_sm / warps);
  if (registers_per_thread > 0)
    blocks = std::min(blocks, gpu.registers_per_sm / (int64_t{registers_per_thread} * threads));
  if (shared_bytes > 0) blocks = std::min(blocks, gpu.shared_bytes_per_sm / shared_bytes);
  return std::max<int64_t>(1, blocks);
}

Expected<Machine> find_gpu(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string_view sm = name.substr(0, colon);
  for (const GpuRow& row : gpu_table()) {
    if (sm != "sm_" + std::to_string(row.sm)) continue;
    if (colon != std::string_view::npos && name.substr(colon + 1) != row.part) continue;
    Machine machine;
    machine.triple = "nvptx64-nvidia-cuda";
    // Later GPUs run the code of the first one that has all its instructions.
    machine.processor = row.sm < 80 ? "sm_75" : "sm_80";
    machine.features = row.sm < 80 ? "+ptx70" : "+ptx80";
    machine.arch = Arch::Nvptx;
    machine.cpu = thread_facts();
    machine.gpu = row.facts;
    machine.gpu->sm = row.sm;
    machine.gpu->part = row.part;
    return machine;
  }
  return unknown_gpu(name);
}

} // namespace firn
