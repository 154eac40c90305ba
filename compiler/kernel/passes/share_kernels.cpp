// share-kernels: the parallel loop of a kernel that runs long enough is cut into tasks, one per thread that
// an executor has at most:
//
//   parallel p [0, 99] count 100    ->    parallel p [0, 99] count 100 tasks 8
//
// Handing tasks out and waiting for the last of them costs about as long whatever the tasks do: kernels that
// would gain less stay on the caller's thread, and so do those with phases whose threads would wait for each
// other for as long. Runs before memory is planned, for each task has scratch of
// its own.
//
// Results have the same bits however many threads there are: a task computes whole items, each as one thread
// would.
#include "compiler/kernel/passes/cycle_count.h"
#include "compiler/kernel/passes/pass.h"

#include <algorithm>

namespace firn::kernel {
namespace {

// The cycles that threads save.
double gain(double cycles, int tasks) {
  return cycles * (1 - 1.0 / tasks);
}

// Makes the buffers that calls pass as scratch per task large enough for all tasks.
void widen_scratch(Program& program, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    widen_scratch(program, step.first);
    widen_scratch(program, step.second);
    if (step.kind != Step::Kind::Call) continue;
    const Kernel& kernel = *program.kernels[static_cast<size_t>(step.kernel)];
    for (size_t i = 0; kernel.tasks > 1 && i < step.arguments.size(); ++i) {
      if (!kernel.parameters[i].per_task) continue;
      Buffer& buffer = program.buffers[static_cast<size_t>(step.arguments[i].buffer)];
      buffer.bytes = std::max(buffer.bytes, task_stride(kernel.parameters[i]) * kernel.tasks);
    }
  }
}

} // namespace

bool share_kernels(Program& program, const KernelPassOptions& options) {
  if (!options.target || options.goals.threads <= 1) return false;
  bool changed = false;
  for (auto& kernel : program.kernels) {
    auto tasks = static_cast<int>(std::min<int64_t>(options.goals.threads, kernel->max_iterations()));
    if (tasks <= 1 || tasks == kernel->tasks) continue;
    const Machine& target = options.target_of(*kernel);
    double cycles = count_cycles(*kernel, target) * static_cast<double>(kernel->max_iterations()) *
                    static_cast<double>(kernel->phases);
    cycles = std::max(cycles, static_cast<double>(kernel->bytes) / target.cpu.l2_bytes_per_cycle);
    double waits = static_cast<double>(kernel->phases - 1) * kBarrierCycles;
    if ((gain(cycles, tasks) < kSharedCallCycles + waits && !options.goals.share_all) ||
        !options.take_rewrite())
      continue;
    kernel->tasks = tasks;
    changed = true;
  }
  if (changed) widen_scratch(program, program.steps);
  return changed;
}

} // namespace firn::kernel
