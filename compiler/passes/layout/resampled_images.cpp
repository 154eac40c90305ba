// Chains of enlargements and elementwise ops, from the plain values behind them upwards.
#include "compiler/passes/layout/resampled_images.h"

#include "compiler/plan/composites.h"

#include <algorithm>

namespace firn {

bool enlarges(const Instruction& instruction) {
  return plan::find_resample(instruction) && instruction.type().at_bound().num_elements() >
                                                 instruction.operand(0).type().at_bound().num_elements();
}

void leave_plain(const Region& region, std::unordered_set<const Instruction*>& blocked) {
  std::unordered_set<const Instruction*> chain;
  auto stays_blocked = [&](const Instruction* instruction) {
    return blocked.count(instruction) > 0 && chain.count(instruction) == 0;
  };
  auto read_plain = [&](const Instruction& instruction) {
    return std::none_of(instruction.users().begin(), instruction.users().end(), stays_blocked);
  };
  const auto& list = region.instructions();
  for (auto at = list.rbegin(); at != list.rend(); ++at) {
    const Instruction& instruction = **at;
    if (blocked.count(&instruction) && (enlarges(instruction) || is_elementwise(instruction.opcode())) &&
        read_plain(instruction))
      chain.insert(&instruction);
  }
  // Elementwise ops with another operand in blocks stay blocked, and so do the values that they read.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = chain.begin(); at != chain.end();) {
      const std::vector<Value>& operands = (*at)->operands();
      bool stays = !read_plain(**at) ||
                   (!enlarges(**at) && std::any_of(operands.begin(), operands.end(), [&](Value operand) {
                     return stays_blocked(operand.def);
                   }));
      changed |= stays;
      at = stays ? chain.erase(at) : std::next(at);
    }
  }
  for (const Instruction* instruction : chain) blocked.erase(instruction);
}

} // namespace firn
