// The table of a GPU's kernels. Rates and limits are those of the part that stands for the GPU.
#include "compiler/driver/gpu_report.h"

#include "compiler/target/gpu_table.h"

#include <algorithm>
#include <cstdio>

namespace firn::driver {
namespace {

constexpr double kMicrosecond = 1e-6;

struct CallReport {
  std::string kernel, computes;
  int64_t blocks = 0, shared = 0;
  int threads = 0;
  double occupancy = 0;                       // warps of those that an SM holds
  double memory = 0, arithmetic = 0, gap = 0; // seconds
  double seconds() const { return std::max(memory, arithmetic) + gap; }
  const char* bound() const {
    if (gap >= std::max(memory, arithmetic)) return "launch";
    return memory >= arithmetic ? "memory" : "arithmetic";
  }
};

CallReport report(const kernel::Kernel& kernel, const GpuFacts& gpu) {
  CallReport call{kernel.name, kernel.algorithm};
  call.blocks = kernel.max_iterations();
  call.threads = kernel.threads;
  for (const kernel::BufferParameter& buffer : kernel.scratch)
    if (buffer.shared) call.shared += buffer.size * kernel::scalar_bytes(buffer.element);
  const int warps = (kernel.threads + kWarpThreads - 1) / kWarpThreads;
  // A program of few blocks does not fill what an SM could hold.
  const int64_t at_once =
      std::min(resident_blocks(gpu, kernel.threads, /*registers_per_thread=*/0, call.shared),
               (call.blocks + gpu.sms - 1) / gpu.sms);
  call.occupancy = static_cast<double>(at_once * warps) / gpu.warps_per_sm;
  call.memory = static_cast<double>(kernel.bytes) / (gpu.memory_gigabytes_per_second * 1e9);
  call.arithmetic =
      static_cast<double>(kernel.flops) / (2.0 * gpu.fma_per_cycle * gpu.sms * gpu.gigahertz * 1e9);
  call.gap = gpu.launch_microseconds * kMicrosecond;
  return call;
}

void add_calls(const kernel::Program& program, const std::vector<kernel::Step>& steps, const GpuFacts& gpu,
               std::vector<CallReport>& calls) {
  for (const kernel::Step& step : steps) {
    if (step.kind == kernel::Step::Kind::Call)
      calls.push_back(report(*program.kernels[static_cast<size_t>(step.kernel)], gpu));
    add_calls(program, step.first, gpu, calls);
    add_calls(program, step.second, gpu, calls);
  }
}

} // namespace

std::string gpu_report_text(const Compilation& c) {
  const GpuFacts& gpu = *c.target.gpu;
  std::vector<CallReport> calls;
  add_calls(c.program, c.program.steps, gpu, calls);
  char line[256];
  std::snprintf(line, sizeof line, "%s, %d SMs, %.0f GB/s, %.1f TFLOP/s of f32\n",
                (c.target.display_name() + ":" + std::string(gpu.part)).c_str(), gpu.sms,
                gpu.memory_gigabytes_per_second, 2e-3 * gpu.fma_per_cycle * gpu.sms * gpu.gigahertz);
  std::string text = line;
  std::snprintf(line, sizeof line, "  %-32s %-24s %9s %7s %9s %5s %9s  %s\n", "kernel", "computes", "blocks",
                "threads", "shared B", "full", "us", "bound by");
  text += line;
  double total = 0;
  for (const CallReport& call : calls) {
    std::snprintf(line, sizeof line, "  %-32s %-24s %9lld %7d %9lld %4.0f%% %9.2f  %s\n", call.kernel.c_str(),
                  call.computes.c_str(), static_cast<long long>(call.blocks), call.threads,
                  static_cast<long long>(call.shared), 100 * call.occupancy, call.seconds() / kMicrosecond,
                  call.bound());
    text += line;
    total += call.seconds();
  }
  std::snprintf(line, sizeof line, "%zu launches, %.1f us at least; arena %lld B, weights %lld B\n",
                calls.size(), total / kMicrosecond, static_cast<long long>(c.program.arena_bytes),
                static_cast<long long>(c.program.weight_bytes));
  return text + line;
}

} // namespace firn::driver
