// Loops rebuilt with fewer carried values.
#include "compiler/passes/simplify/loops.h"

#include <algorithm>
#include <unordered_set>

namespace firn {
namespace {

// Everything that `roots` depend on within the body, nested regions included.
std::unordered_set<const Instruction*> reached_from(std::vector<const Instruction*> roots) {
  std::unordered_set<const Instruction*> reached;
  while (!roots.empty()) {
    const Instruction* next = roots.back();
    roots.pop_back();
    if (!reached.insert(next).second) continue;
    for (Value operand : next->operands()) roots.push_back(operand.def);
    for (int r = 0; r < next->num_regions(); ++r) {
      for (const auto& inner : next->region(r).instructions()) roots.push_back(inner.get());
      for (Value result : next->region(r).results()) roots.push_back(result.def);
    }
  }
  return reached;
}

void copy_region(const Region& from, const Instruction& old_loop, const std::vector<bool>& keep, Region& to) {
  std::vector<Value> arguments;
  for (size_t i = 0; i < keep.size(); ++i) {
    Instruction* parameter = from.parameters()[i];
    arguments.push_back(keep[i] ? to.add_parameter(parameter->type(), parameter->name())->result()
                                : old_loop.operands()[i]);
  }
  to.set_results(to.inline_region(from, arguments));
}

} // namespace

std::vector<bool> live_loop_values(const Instruction& loop) {
  const Region& body = loop.region(1);
  size_t count = loop.operands().size();
  std::vector<bool> live(count);
  for (size_t i = 0; i < count; ++i)
    live[i] = loop.num_uses(static_cast<int>(i)) > 0 || loop.region(0).parameters()[i]->has_uses();
  for (bool again = true; again;) {
    again = false;
    std::vector<const Instruction*> roots;
    for (size_t i = 0; i < count; ++i)
      if (live[i]) roots.push_back(body.results()[i].def);
    auto reached = reached_from(roots);
    for (size_t i = 0; i < count; ++i)
      if (!live[i] && reached.count(body.parameters()[i])) again = live[i] = true;
  }
  return live;
}

std::vector<bool> invariant_loop_values(const Instruction& loop) {
  const Region& body = loop.region(1);
  std::vector<bool> invariant(loop.operands().size());
  for (size_t i = 0; i < invariant.size(); ++i)
    invariant[i] = body.results()[i].def == body.parameters()[i] &&
                   loop.operands()[i].type() == body.parameters()[i]->type() &&
                   loop.operands()[i].type() == loop.type(static_cast<int>(i));
  return invariant;
}

Instruction* drop_loop_values(Instruction& loop, const std::vector<bool>& keep) {
  if (std::all_of(keep.begin(), keep.end(), [](bool kept) { return kept; })) return nullptr;
  std::vector<Value> operands;
  std::vector<Type> types;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    operands.push_back(loop.operands()[i]);
    types.push_back(loop.type(static_cast<int>(i)));
  }
  Region& parent = *loop.parent();
  Instruction* smaller = parent.append(Opcode::While, operands, types, loop.attributes(), &loop);
  smaller->set_location(loop.location());
  for (int r = 0; r < 2; ++r) {
    const Region& from = loop.region(r);
    Region& to = smaller->add_region();
    copy_region(from, loop, keep, to);
    if (r == 0) continue; // the condition's only result stays
    std::vector<Value> results;
    for (size_t i = 0; i < keep.size(); ++i)
      if (keep[i]) results.push_back(to.results()[i]);
    to.set_results(results);
  }
  for (size_t i = 0, kept = 0; i < keep.size(); ++i)
    parent.replace_uses({&loop, static_cast<int>(i)},
                        keep[i] ? Value{smaller, static_cast<int>(kept++)} : loop.operands()[i]);
  parent.erase(&loop);
  return smaller;
}

} // namespace firn
