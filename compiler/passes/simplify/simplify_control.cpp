// simplify-control: resolves conditionals and loops whose conditions are known.
//
//   %r = if %true region() {A}, region() {B}                 ->   A, inlined
//   %w:2 = while %i, %x ...  whose body passes %x unchanged  ->   %w = while %i ...; %w#1 becomes %x
//   %w = while %i ...  whose condition is constant false     ->   %i
//
// - Requires: constants folded.
// - Establishes: no `if` on a constant; loops carry no invariant values.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/simplify/loops.h"

namespace firn {
namespace {

std::optional<bool> known_condition(Value value) {
  const Literal* literal = constant_literal(value);
  if (!literal || literal->dtype() != DType::Bool || literal->num_elements() != 1) return std::nullopt;
  return literal->get_int(0) != 0;
}

bool types_match(const Instruction& instruction, const std::vector<Value>& values) {
  for (int i = 0; i < instruction.num_results(); ++i)
    if (!(values[static_cast<size_t>(i)].type() == instruction.type(i))) return false;
  return true;
}

void replace_results(Instruction& instruction, const std::vector<Value>& values) {
  for (int i = 0; i < instruction.num_results(); ++i)
    instruction.parent()->replace_uses(instruction.result(i), values[static_cast<size_t>(i)]);
  instruction.parent()->erase(&instruction);
}

bool simplify_if(Instruction& conditional, const PassOptions& options) {
  auto condition = known_condition(conditional.operand(0));
  if (!condition) return false;
  const Region& taken = conditional.region(*condition ? 0 : 1);
  if (!types_match(conditional, taken.results()) || !options.take_rewrite()) return false;
  replace_results(conditional, conditional.parent()->inline_region(taken, {}, &conditional));
  return true;
}

bool simplify_while(Instruction& loop, const PassOptions& options) {
  auto condition = known_condition(loop.region(0).results()[0]);
  if (condition && !*condition) {
    if (!types_match(loop, loop.operands()) || !options.take_rewrite()) return false;
    replace_results(loop, loop.operands());
    return true;
  }
  std::vector<bool> keep = invariant_loop_values(loop);
  keep.flip();
  if (keep == std::vector<bool>(keep.size(), true) || !options.take_rewrite()) return false;
  drop_loop_values(loop, keep);
  return true;
}

bool simplify_region(Region& region, const PassOptions& options) {
  bool changed = false;
  for (Instruction* instruction : region.snapshot()) {
    bool branches = has_trait(instruction->opcode(), Captures);
    if (!branches) continue;
    for (int r = 0; r < instruction->num_regions(); ++r)
      changed |= simplify_region(instruction->region(r), options);
    changed |= instruction->is(Opcode::If) ? simplify_if(*instruction, options)
                                           : simplify_while(*instruction, options);
  }
  return changed;
}

} // namespace

bool simplify_control(Module& module, const PassOptions& options) {
  bool changed = false;
  for (const auto& function : module.functions()) changed |= simplify_region(function->body(), options);
  return changed;
}

} // namespace firn
