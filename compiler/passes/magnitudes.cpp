// Magnitudes by the operations that constants go through.
#include "compiler/passes/magnitudes.h"

#include "compiler/passes/match.h"

#include <algorithm>

namespace firn {

std::optional<Magnitudes> magnitudes(Value value) {
  if (const Literal* literal = constant_literal(value)) {
    Magnitudes found;
    for (int64_t i = 0; i < literal->num_elements(); ++i) {
      double magnitude = std::abs(literal->get_double(i));
      if (magnitude == 0) continue;
      found.least = std::min(found.least, magnitude);
      found.most = std::max(found.most, magnitude);
    }
    return found;
  }
  const Instruction& def = *value.def;
  if (def.is(Opcode::Multiply) || def.is(Opcode::Add) || def.is(Opcode::Subtract)) {
    auto lhs = magnitudes(def.operand(0)), rhs = magnitudes(def.operand(1));
    if (!lhs || !rhs) return std::nullopt;
    return def.is(Opcode::Multiply) ? *lhs * *rhs : *lhs + *rhs;
  }
  bool keeps = def.is(Opcode::BroadcastInDim) || def.is(Opcode::Reshape) || def.is(Opcode::Convert) ||
               def.is(Opcode::Negate);
  return keeps ? magnitudes(def.operand(0)) : std::nullopt;
}

} // namespace firn
