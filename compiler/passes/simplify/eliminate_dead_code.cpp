// eliminate-dead-code: removes instructions whose results nothing uses, and values carried around loops for
// nothing.
//
//   %a = negate %x : f32[4]      ->   (gone, if %a has no use)
//   %w:2 = while %i, %dead ...   ->   %w = while %i ...   when only the loop itself looks at the second value
//
// Ops are free of side effects but for clamps that end a run: these stay, as what a program does about a
// number beyond its bound must not depend on what is simplified. Parameters stay, as they are the signature
// of their region.
//
// - Requires: nothing.
// - Establishes: every instruction but parameters and such clamps is used.
// - Breaks: nothing.
#include "compiler/graph/computed_indices.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/simplify/loops.h"

namespace firn {
namespace {

bool erase_dead(Region& region, const PassOptions& options) {
  bool changed = false;
  std::vector<Instruction*> all = region.snapshot();
  for (size_t i = all.size(); i-- > 0;) {
    Instruction* instruction = all[i];
    if (instruction->is(Opcode::Parameter)) continue;
    if (is_dead(*instruction)) {
      if (!options.take_rewrite()) return changed;
      region.erase(instruction);
      changed = true;
      continue;
    }
    if (instruction->is(Opcode::While)) {
      std::vector<bool> live = live_loop_values(*instruction);
      if (live != std::vector<bool>(live.size(), true) && options.take_rewrite()) {
        instruction = drop_loop_values(*instruction, live);
        changed = true;
      }
    }
    if (has_trait(instruction->opcode(), Captures) || instruction->is(Opcode::Fusion))
      for (int r = 0; r < instruction->num_regions(); ++r)
        changed |= erase_dead(instruction->region(r), options);
  }
  return changed;
}

} // namespace

bool eliminate_dead_code(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= erase_dead(function->body(), options);
  return changed;
}

} // namespace firn
