// Passes over the kernel IR: one row in passes.def, one documented function each. They run over programs
// whose buffers have their places.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/support/goals.h"
#include "compiler/support/pass_list.h"
#include "compiler/target/machine.h"

#include <string>

namespace firn::kernel {

struct KernelPassOptions : RewriteLimit, PassRefusal {
  KernelPassOptions(const Goals& wanted = kDefaultGoals, const Machine* machine = nullptr,
                    const Machine* common = nullptr)
      : target(machine), baseline(common), goals(wanted) {}

  const Machine* target;   // null: target-independent passes only
  const Machine* baseline; // the least able of several CPUs, for kernels that all of them share
  const Goals& goals;

  const Machine& target_of(const Kernel& kernel) const {
    return kernel.is_for_baseline && baseline ? *baseline : *target;
  }
};

using KernelPipelineRun = PassListRun<Program, KernelPassOptions>;

// Runs the named passes ("merge-equal-kernels,prefetch-weights", "none"), verifying after each that changed
// something. An unknown name is a usage error; a broken program is Fault::Internal naming the pass.
Result run_kernel_passes(Program& program, const std::string& names, KernelPipelineRun& run);
// The list that `firn compile` runs, as such a string, without or with the passes that need a target.
std::string default_kernel_pipeline(bool for_target);
// The list for a GPU, or with `as_loops` for a CPU that runs its kernels as loops.
std::string gpu_kernel_pipeline(bool as_loops);

// The passes that run before memory is planned, and behind them those for objects that threads share, or for
// GPUs.
inline constexpr const char* kEarlyPasses = "hoist-invariant-calls,limit-alignment";
inline constexpr const char* kSharingPasses = "share-kernels,run-concurrently";
inline constexpr const char* kGpuPasses = "spread-items";

// Each is documented at the head of its own file.
#define FIRN_KERNEL_PASS(function, name, summary)                                                            \
  bool function(Program& program, const KernelPassOptions& options);
#include "compiler/kernel/passes/passes.def"

} // namespace firn::kernel
