// See byte_values.h.
#include "compiler/plan/byte_values.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/fusion.h"
#include "compiler/graph/literal.h"

#include <algorithm>

namespace firn::plan {
namespace {

bool is_within(double low, double high) {
  return low >= -128 && high <= 255;
}

bool is_constant_within(const Instruction& constant) {
  const Literal& literal = *constant.literal();
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (double value = literal.get_double(i); !is_within(value, value)) return false;
  return true;
}

} // namespace

bool holds_bytes(Value value) {
  const Instruction& maker = *value.def;
  if (value.dtype() == DType::U8 || value.dtype() == DType::I8) return true;
  auto all_operands = [&] {
    return std::all_of(maker.operands().begin(), maker.operands().end(), holds_bytes);
  };
  switch (maker.opcode()) {
  case Opcode::Constant: return is_constant_within(maker);
  case Opcode::Parameter: {
    const Instruction* fusion = maker.parent()->owner();
    return fusion && fusion->is(Opcode::Fusion) && holds_bytes(outside_of(*fusion, value));
  }
  case Opcode::Clamp: return holds_bytes(maker.operand(0)) && holds_bytes(maker.operand(2));
  case Opcode::Fusion: return holds_bytes(maker.region().results()[static_cast<size_t>(value.index)]);
  case Opcode::ReduceWindow: return simple_reducer(maker) == Opcode::Maximum && all_operands();
  case Opcode::BroadcastInDim:
  case Opcode::Convert:
  case Opcode::Copy:
  case Opcode::Reshape:
  case Opcode::Transpose:
  case Opcode::Slice:
  case Opcode::Pad:
  case Opcode::Concatenate: return all_operands();
  default: return false;
  }
}

} // namespace firn::plan
