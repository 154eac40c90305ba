// Walks over the values that a value is computed from. Graphs share subexpressions, so that the number of
// paths through them may double with every instruction: a walk looks at values, never at paths.
#pragma once

#include "compiler/graph/module.h"

#include <set>
#include <utility>
#include <vector>

namespace firn {

// A visit's answer about a value: walk into the operands of its instruction, pass them by, or end the walk.
enum class Walk : uint8_t { Into, Past, Stop };

// Calls visit(value, depth) for `root` (depth 0) and the values that it is computed from, as far as the
// answers lead: every value once, breadth first, at its least depth. False if a visit answered Stop.
template <class Visit> bool walk_producers(Value root, Visit visit) {
  std::set<std::pair<const Instruction*, int>> seen = {{root.def, root.index}};
  std::vector<Value> level = {root}, next;
  for (int depth = 0; !level.empty(); ++depth, level.swap(next), next.clear())
    for (Value value : level) {
      Walk answer = visit(value, depth);
      if (answer == Walk::Stop) return false;
      if (answer == Walk::Past) continue;
      for (Value operand : value.def->operands())
        if (seen.emplace(operand.def, operand.index).second) next.push_back(operand);
    }
  return true;
}

// Whether the value is a constant with bytes, or made of such alone by a few elementwise ops, broadcasts and
// reshapes: a constant that fold-constants has not come to yet.
inline bool is_constant_expression(Value value) {
  constexpr int kMaximumDepth = 8;
  return walk_producers(value, [](Value part, int depth) {
    const Instruction& def = *part.def;
    if (def.is(Opcode::Constant)) return def.literal()->is_opaque() ? Walk::Stop : Walk::Past;
    bool transparent = is_elementwise(def.opcode()) || def.is(Opcode::BroadcastInDim) ||
                       def.is(Opcode::Reshape) || def.is(Opcode::Dequantize);
    return transparent && depth < kMaximumDepth ? Walk::Into : Walk::Stop;
  });
}

} // namespace firn
