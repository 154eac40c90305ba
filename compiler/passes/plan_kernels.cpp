// plan-kernels: writes down how every instruction is computed, for lowering to follow.
//
//   %d = convolution %x, %w {groups = 32, ...}
//     ->
//   %d = convolution %x, %w {groups = 32, plan = "depthwise tile 14 along 1 unrolled taps_in_registers", ...}
//
// Plans that stand there already are kept: one written by hand overrules the cost model.
//
// - Requires: fusions and layouts as lowering is to see them.
// - Establishes: `plan` on every instruction that becomes a kernel.
// - Breaks: nothing; other passes do not read plans.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/plan_function.h"

namespace firn {
namespace {

bool write_plans(Region& region, const plan::KernelPlans& plans, const PassOptions& options) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    const plan::KernelPlan* plan = plans.find(*instruction);
    if (plan && !instruction->attributes().has("plan") && options.take_rewrite()) {
      instruction->attributes().set("plan", plan::to_string(*plan));
      changed = true;
    }
    for (int i = 0; i < instruction->num_regions(); ++i)
      changed |= write_plans(instruction->region(i), plans, options);
  }
  return changed;
}

} // namespace

bool plan_kernels(Module& module, const PassOptions& options) {
  if (!options.target || !has_main(module)) return false;
  bool changed = false;
  for (Function* entry : module.entries()) {
    auto plans = plan::plan_function(
        *entry, {*options.target, options.goals, options.schedules, options.explanations});
    // A plan written by hand that cannot be followed is refused when plans are made for every CPU.
    if (plans) changed |= write_plans(entry->body(), *plans, options);
  }
  return changed;
}

} // namespace firn
