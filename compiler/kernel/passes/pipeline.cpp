// The order in which `firn compile` runs the passes over kernels.
#include "compiler/kernel/passes/pass.h"

namespace firn::kernel {
namespace {

constexpr PassStep kSteps[] = {
    {"merge-equal-kernels", false,
     "first: equal kernels then stay equal, for what follows changes them once"},
    {"prefetch-weights", true, "it counts the bytes and the work of the calls that there are"},
    {"make-entry", false, "last: the passes before it look for calls among the program's steps"},
};

const PassLevel<Program, KernelPassOptions>& kernel_level() {
  static const PassLevel<Program, KernelPassOptions> level = {{
#define FIRN_KERNEL_PASS(function, name, summary) {name, summary, function},
#include "compiler/kernel/passes/passes.def"
                                                              },
                                                              verify,
                                                              print_program};
  return level;
}

} // namespace

Result run_kernel_passes(Program& program, const std::string& names, KernelPipelineRun& run) {
  return run_pass_list(program, kernel_level(), names, run);
}

std::string default_kernel_pipeline(bool for_target) {
  return join_steps(kSteps, for_target);
}

// Nothing is prefetched: the threads of other warps run while one waits.
std::string gpu_kernel_pipeline(bool as_loops) {
  return std::string("merge-equal-kernels,") + (as_loops ? "gpu-to-loops," : "") + "make-entry";
}

} // namespace firn::kernel
