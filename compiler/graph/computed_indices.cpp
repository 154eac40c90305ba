// See computed_indices.h.
#include "compiler/graph/computed_indices.h"

#include <algorithm>

namespace firn {
namespace {

// Whether a value is known at compile time, seen through the parameters of fusions and composites.
bool is_constant(Value value) {
  while (value.def->is(Opcode::Parameter)) {
    const Instruction* owner = value.def->parent()->owner();
    if (!owner || !(owner->is(Opcode::Fusion) || owner->is(Opcode::Composite))) return false;
    const std::vector<Instruction*>& parameters = value.def->parent()->parameters();
    const auto at = std::find(parameters.begin(), parameters.end(), value.def);
    value = owner->operand(static_cast<int>(at - parameters.begin()));
  }
  return value.def->is(Opcode::Constant);
}

} // namespace

bool has_computed_indices(const Instruction& instruction) {
  int first = 0, end = 0; // the operands that are indices
  if (has_trait(instruction.opcode(), Indexed)) first = 1, end = 2;
  if (instruction.is(Opcode::DynamicSlice)) first = 1, end = instruction.num_operands();
  if (instruction.is(Opcode::DynamicUpdateSlice)) first = 2, end = instruction.num_operands();
  for (int i = first; i < end; ++i)
    if (!is_constant(instruction.operand(i))) return true;
  for (int i = 0; i < instruction.num_regions(); ++i)
    if (has_computed_indices(instruction.region(i))) return true;
  return false;
}

bool is_checked_clamp(const Instruction& instruction) {
  return instruction.is(Opcode::Clamp) && instruction.attributes().flag("checked");
}

// Whether the instruction, or one in its regions, ends the run if a value is out of bounds.
static bool may_end_run(const Instruction& instruction) {
  for (int i = 0; i < instruction.num_regions(); ++i)
    if (has_checked_clamps(instruction.region(i))) return true;
  return is_checked_clamp(instruction);
}

bool has_checked_clamps(const Region& region) {
  return std::any_of(region.instructions().begin(), region.instructions().end(),
                     [](const auto& instruction) { return may_end_run(*instruction); });
}

bool is_dead(const Instruction& instruction) {
  return !instruction.has_uses() && !may_end_run(instruction);
}

bool has_computed_indices(const Region& region) {
  return std::any_of(region.instructions().begin(), region.instructions().end(),
                     [](const auto& instruction) { return has_computed_indices(*instruction); });
}

} // namespace firn
