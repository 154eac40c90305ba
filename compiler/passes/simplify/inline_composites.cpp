// inline-composites: replaces composites for which lowering has no kernel by their reference bodies.
//
//   %y = composite %x {name = silu} region(%p) { ... }     ->     the body, on %x
//
// Composites with kernels of their own (softmax, norms over rows, recurrent layers, resampling) stay.
// Elementwise ones are inlined because fusions compute them as part of larger loops.
//
// - Requires: nothing.
// - Establishes: every composite has a kernel.
// - Breaks: composites can no longer be recognised by name.
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/composites.h"

namespace firn {
namespace {

bool inline_in(Region& region, const PassOptions& options) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    if (has_trait(instruction->opcode(), Captures))
      for (int r = 0; r < instruction->num_regions(); ++r)
        changed |= inline_in(instruction->region(r), options);
    if (!instruction->is(Opcode::Composite) || plan::has_composite_kernel(*instruction) ||
        !options.take_rewrite())
      continue;
    std::vector<Value> results =
        region.inline_region(instruction->region(), instruction->operands(), instruction);
    for (int i = 0; i < instruction->num_results(); ++i)
      region.replace_uses(instruction->result(i), results[static_cast<size_t>(i)]);
    region.erase(instruction);
    changed = true;
  }
  return changed;
}

} // namespace

bool inline_composites(Module& module, const PassOptions& options) {
  bool changed = false;
  for (bool again = true; again;) { // bodies may hold composites themselves
    again = false;
    for (const auto& function : module.functions()) again |= inline_in(function->body(), options);
    changed |= again;
  }
  return changed;
}

} // namespace firn
