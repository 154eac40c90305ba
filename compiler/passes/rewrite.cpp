// The driver of local rewrites.
#include "compiler/passes/rewrite.h"

#include "compiler/graph/computed_indices.h"
#include "compiler/graph/evaluate.h"
#include "compiler/passes/match.h"

#include <algorithm>
#include <unordered_set>

namespace firn {
namespace {

constexpr int kMaximumRounds = 16;

void visit_region(Region& region, const std::function<void(Region&)>& visit) {
  visit(region);
  for (Instruction* instruction : region.snapshot())
    if (has_trait(instruction->opcode(), Captures))
      for (int i = 0; i < instruction->num_regions(); ++i) visit_region(instruction->region(i), visit);
}

// Erases what a rule made in front of `at` before it gave up.
void discard(Region& region, Region::List::iterator first, Region::List::iterator at) {
  std::vector<Instruction*> made;
  for (; first != at; ++first) made.push_back(first->get());
  while (!made.empty()) {
    region.erase(made.back());
    made.pop_back();
  }
}

bool rewrite_region(Region& region, const PassOptions& options, RewriteRule rule) {
  bool changed = false;
  Region::List& list = region.instructions();
  for (auto at = list.begin(); at != list.end(); ++at) {
    Instruction* instruction = at->get();
    if (instruction->is(Opcode::Parameter) || instruction->is(Opcode::Constant) || !instruction->has_uses())
      continue;
    for (int i = 0; i < instruction->num_regions(); ++i)
      if (has_trait(instruction->opcode(), Captures))
        changed |= rewrite_region(instruction->region(i), options, rule);
    if (instruction->num_results() != 1) continue;
    bool is_first = at == list.begin();
    auto before = is_first ? at : std::prev(at);
    Value value = rule(*instruction, options);
    if (!value || value == instruction->result() || !options.take_rewrite()) {
      discard(region, is_first ? list.begin() : std::next(before), at);
      continue;
    }
    region.replace_uses(instruction->result(), value);
    changed = true;
  }
  return changed;
}

// Erases what rewriting left without uses; last to first, so that chains go in one sweep.
void sweep(Region& region) {
  std::vector<Instruction*> all = region.snapshot();
  for (size_t i = all.size(); i-- > 0;) {
    Instruction* instruction = all[i];
    if (instruction->is(Opcode::Parameter)) continue;
    if (is_dead(*instruction)) region.erase(instruction);
  }
}

} // namespace

bool has_main(const Module& module) {
  return !module.entry.empty() || module.find("main") || module.functions().size() == 1;
}

void for_each_region(Module& module, const std::function<void(Region&)>& visit) {
  for (const auto& function : module.functions()) visit_region(function->body(), visit);
}

bool rewrite_module(Module& module, const PassOptions& options, RewriteRule rule) {
  bool changed = false;
  for (int round = 0; round < kMaximumRounds; ++round) {
    bool again = false;
    for (const auto& function : module.functions()) again |= rewrite_region(function->body(), options, rule);
    if (!again) break;
    changed = true;
    for_each_region(module, sweep);
  }
  return changed;
}

void replace_instruction(Instruction& instruction, Value value) {
  instruction.parent()->replace_uses(instruction.result(), value);
  instruction.parent()->erase(&instruction);
}

Instruction* behind(Value value) {
  auto& list = value.def->parent()->instructions();
  auto at = std::find_if(list.begin(), list.end(),
                         [&](const auto& instruction) { return instruction.get() == value.def; });
  do ++at;
  while (at != list.end() && (*at)->is(Opcode::Parameter));
  return at == list.end() ? nullptr : at->get();
}

Value convert_behind(Value value, DType dtype) {
  GraphBuilder builder(*value.def->parent(), behind(value));
  builder.set_location(value.def->location());
  Value converted = builder.convert(value, dtype);
  if (!constant_literal(value)) return converted;
  auto literals = evaluate_instruction(*converted.def, {value.def->literal()});
  return literals ? builder.constant((*literals)[0]) : converted;
}

int moved_operands(const Instruction& instruction) {
  switch (instruction.opcode()) {
  case Opcode::Reshape:
  case Opcode::Transpose:
  case Opcode::Slice:
  case Opcode::Reverse:
  case Opcode::BroadcastInDim:
  case Opcode::Gather: return 1;
  case Opcode::Pad: return 2;
  case Opcode::Concatenate: return instruction.num_operands();
  case Opcode::ReduceWindow:
    return instruction.num_operands() == 2 && simple_reducer(instruction) == Opcode::Maximum ? 2 : 0;
  default: return 0;
  }
}

Value moved(GraphBuilder& builder, const Instruction& movement, const std::vector<Value>& of) {
  if (movement.is(Opcode::ReduceWindow))
    return builder.reduce_window(Opcode::Maximum, of[0], movement.attributes().window(),
                                 of.size() > 1 ? of[1] : Value{});
  std::vector<Value> operands = of;
  for (int i = static_cast<int>(of.size()); i < movement.num_operands(); ++i)
    operands.push_back(movement.operand(i));
  Type type = movement.type();
  type.dtype = of[0].dtype();
  return builder.make_typed(movement.opcode(), operands, {type}, movement.attributes())->result();
}

void read_converted(Value value, Value converted, const std::vector<Instruction*>& users) {
  if (users.empty()) return;
  GraphBuilder builder(*converted.def->parent(), behind(converted));
  Value back = builder.convert(converted, value.dtype());
  for (Instruction* user : users) {
    bool converts = user->is(Opcode::Convert) && user->type().dtype != converted.dtype() &&
                    user->type().dtype != DType::String;
    for (int i = 0; i < user->num_operands(); ++i)
      if (user->operand(i) == value) user->set_operand(i, converts ? converted : back);
  }
  erase_if_dead(back.def);
}

void share_converted(Value value, Value converted) {
  std::vector<Instruction*> users;
  for (Instruction* user : value.def->users())
    if (user != converted.def && is_elementwise(user->opcode()) && user->parent() == value.def->parent())
      users.push_back(user);
  read_converted(value, converted, users);
}

void erase_if_dead(Instruction* instruction) {
  std::vector<Instruction*> pending = {instruction};
  std::unordered_set<Instruction*> erased;
  while (!pending.empty()) {
    Instruction* next = pending.back();
    pending.pop_back();
    if (erased.count(next) || next->is(Opcode::Parameter) || !is_dead(*next)) continue;
    for (Value operand : next->operands()) pending.push_back(operand.def);
    erased.insert(next);
    next->parent()->erase(next);
  }
}

} // namespace firn
