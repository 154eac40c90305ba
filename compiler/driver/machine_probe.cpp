// Probes of peak arithmetic and bandwidth, as kernels of our own.
#include "compiler/driver/machine_probe.h"

#include "compiler/codegen/codegen.h"
#include "compiler/driver/object_runner.h"
#include "compiler/kernel/builder.h"

#include <algorithm>
#include <chrono>

namespace firn::driver {
namespace {

using kernel::Builder;
using kernel::Register;
using Clock = std::chrono::steady_clock;

constexpr int kAccumulators = 14; // enough to hide the latency of two pipes, fits 16 registers
constexpr int64_t kFmaSteps = 20000;

// parameter 0: floats to read; parameter 1: where the result goes, so that nothing is optimised away.
kernel::Program one_kernel_program(int64_t read_floats, const std::function<void(Builder&)>& body) {
  kernel::Program program;
  program.name = "probe";
  auto kernel = std::make_unique<kernel::Kernel>();
  kernel->name = "probe";
  Builder builder(*kernel);
  builder.add_parameter("in", kernel::Scalar::F32, read_floats, /*written=*/false);
  builder.add_parameter("out", kernel::Scalar::F32, 64, /*written=*/true);
  builder.set_parallel(1);
  body(builder);
  program.kernels.push_back(std::move(kernel));
  auto add = [&](kernel::Space space, int64_t bytes, int64_t offset) {
    kernel::Buffer buffer;
    buffer.name = "probe";
    buffer.space = space;
    buffer.bytes = bytes;
    buffer.offset = offset;
    return program.add_buffer(buffer);
  };
  kernel::Step step;
  step.kernel = 0;
  int in = add(kernel::Space::Arena, read_floats * 4, 256), out = add(kernel::Space::Arena, 256, 0);
  step.arguments = {{in, 0}, {out, 0}};
  program.steps.push_back(step);
  program.arena_bytes = read_floats * 4 + 256;
  return program;
}

// The fastest of several runs, in seconds.
double best_time(Compilation& c) {
  auto runner = ObjectRunner::create(c);
  if (!runner) return 0;
  double best = 1e9;
  for (int i = 0; i < 12; ++i) {
    auto start = Clock::now();
    (*runner)->run_again();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

double fma_rate(Compilation& c) {
  int lanes = std::max(1, c.target.cpu.lanes(32));
  kernel::MachineType type{kernel::Scalar::F32, lanes};
  c.program = one_kernel_program(64, [&](Builder& b) {
    Register scale = b.load(type, 0, 0), offset = b.load(type, 0, lanes);
    std::vector<Register> sums(kAccumulators, offset);
    sums = b.loop_carried(0, kFmaSteps, 1, sums, [&](const IntExpr&, std::vector<Register> in) {
      for (Register& sum : in) sum = b.fma(sum, scale, offset);
      return in;
    });
    Register total = sums[0];
    for (int i = 1; i < kAccumulators; ++i)
      total = b.binary(kernel::OpKind::FAdd, total, sums[static_cast<size_t>(i)]);
    b.store(total, 1, 0);
  });
  double seconds = best_time(c);
  return seconds > 0 ? 2.0 * kAccumulators * lanes * kFmaSteps / seconds : 1;
}

double read_rate(Compilation& c, int64_t floats, int64_t passes) {
  int lanes = std::max(1, c.target.cpu.lanes(32));
  kernel::MachineType type{kernel::Scalar::F32, lanes};
  constexpr int kStreams = 8;
  c.program = one_kernel_program(floats, [&](Builder& b) {
    std::vector<Register> sums(kStreams, b.constant(type, 0));
    sums = b.loop_carried(0, passes, 1, sums, [&](const IntExpr&, const std::vector<Register>& outer) {
      return b.loop_carried(
          0, floats / (kStreams * lanes), 1, outer, [&](const IntExpr& i, std::vector<Register> in) {
            for (int s = 0; s < kStreams; ++s) {
              Register& sum = in[static_cast<size_t>(s)];
              sum = b.binary(kernel::OpKind::FAdd, sum, b.load(type, 0, i * (kStreams * lanes) + s * lanes));
            }
            return in;
          });
    });
    for (int s = 1; s < kStreams; ++s)
      sums[0] = b.binary(kernel::OpKind::FAdd, sums[0], sums[static_cast<size_t>(s)]);
    b.store(sums[0], 1, 0);
  });
  double seconds = best_time(c);
  return seconds > 0 ? static_cast<double>(floats * 4 * passes) / seconds : 1;
}

} // namespace

MachineProbe probe_machine(const Machine& target) {
  Compilation c;
  c.target = target;
  c.codegen.target = target;
  c.codegen.run_symbol = "firn_probe_run";
  c.codegen.weights_symbol = "firn_probe_weights";
  c.codegen.section_suffix = "probe";
  MachineProbe probe;
  probe.flops_per_second = fma_rate(c);
  probe.cache_bytes_per_second = read_rate(c, 128 << 10, 40);
  probe.memory_bytes_per_second = read_rate(c, 24 << 20, 1);
  return probe;
}

} // namespace firn::driver
