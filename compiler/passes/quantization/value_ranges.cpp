// Follows magnitudes through the operations of constant expressions.
#include "compiler/passes/quantization/value_ranges.h"

#include "compiler/passes/match.h"

#include <algorithm>

namespace firn {

std::optional<ValueRanges> value_ranges(Value value) {
  if (const Literal* literal = constant_literal(value)) {
    ValueRanges found;
    for (int64_t i = 0; i < literal->num_elements(); ++i) {
      double magnitude = std::abs(literal->get_double(i));
      if (magnitude == 0) continue;
      found.min = std::min(found.min, magnitude);
      found.max = std::max(found.max, magnitude);
    }
    return found;
  }
  const Instruction& def = *value.def;
  if (def.is(Opcode::Multiply) || def.is(Opcode::Add) || def.is(Opcode::Subtract)) {
    auto lhs = value_ranges(def.operand(0)), rhs = value_ranges(def.operand(1));
    if (!lhs || !rhs) return std::nullopt;
    return def.is(Opcode::Multiply) ? *lhs * *rhs : *lhs + *rhs;
  }
  if (def.is(Opcode::Dequantize)) {
    auto numbers = value_ranges(def.operand(0)), scales = value_ranges(def.operand(1));
    if (numbers && def.num_operands() == 3) {
      auto zeros = value_ranges(def.operand(2));
      numbers = zeros ? std::optional(*numbers + *zeros) : std::nullopt;
    }
    return numbers && scales ? std::optional(*numbers * *scales) : std::nullopt;
  }
  bool keeps = def.is(Opcode::BroadcastInDim) || def.is(Opcode::Reshape) || def.is(Opcode::Convert) ||
               def.is(Opcode::Negate);
  return keeps ? value_ranges(def.operand(0)) : std::nullopt;
}

} // namespace firn
