// The deeper entry function's frame and the deepest below it: a kernel, and what that calls; in between the
// deepest of a task, the executor's own apart. Return addresses are pushed on x86 and, at worst, saved
// elsewhere within the frames already counted.
#include "compiler/codegen/stack_depth.h"

namespace firn::codegen {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t return_address(const CodegenOptions& options) {
  return options.target.arch == Arch::X86_64 ? options.target.pointer_bits / 8 : 0;
}

} // namespace

StackDepths stack_depths(const BackendReport& report, const CodegenOptions& options,
                         const EmittedModule& emitted) {
  StackDepths depths;
  for (const auto& [name, bytes] : report.stack_bytes) {
    if (options.has_choice() && name == options.run_symbol) {
      depths.choice = bytes + return_address(options);
      continue;
    }
    int64_t& deepest = has(emitted.entry_symbols, name)    ? depths.entry
                       : has(emitted.kernel_symbols, name) ? depths.kernel
                       : has(emitted.task_symbols, name)   ? depths.task
                                                           : depths.other;
    deepest = std::max(deepest, bytes);
  }
  return depths;
}

int64_t deepest_stack(const StackDepths& depths, const CodegenOptions& options) {
  const int64_t word = return_address(options);
  const int64_t other = depths.other > 0 ? depths.other + word : 0;
  const int64_t task = depths.task > 0 ? depths.task + word : 0;
  return depths.choice + depths.entry + task + depths.kernel + other + 2 * word;
}

} // namespace firn::codegen
