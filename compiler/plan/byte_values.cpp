// See byte_values.h.
#include "compiler/plan/byte_values.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/fusion.h"
#include "compiler/graph/literal.h"

#include <algorithm>

namespace firn::plan {
namespace {

bool is_constant_within(const Literal& literal, ByteBounds bounds) {
  if (!literal.values_may_be_used()) return false;
  for (int64_t i = 0; i < literal.num_elements(); ++i)
    if (double value = literal.get_double(i); !(value >= bounds.low && value <= bounds.high)) return false;
  return true;
}

} // namespace

ByteBounds bounds_of(DType byte) {
  return byte == DType::U8 ? ByteBounds{0, 255} : ByteBounds{-128, 127};
}

bool lies_within(Value value, ByteBounds bounds) {
  const Instruction& maker = *value.def;
  if (is_byte(value.dtype())) {
    ByteBounds own = bounds_of(value.dtype());
    if (own.low >= bounds.low && own.high <= bounds.high) return true;
    bounds = {std::max(own.low, bounds.low), std::min(own.high, bounds.high)};
  }
  auto lies = [&](Value operand) { return lies_within(operand, bounds); };
  auto all_operands = [&] { return std::all_of(maker.operands().begin(), maker.operands().end(), lies); };
  switch (maker.opcode()) {
  case Opcode::Constant: return is_constant_within(*maker.literal(), bounds);
  case Opcode::Parameter: {
    const Instruction* fusion = maker.parent()->owner();
    return fusion && fusion->is(Opcode::Fusion) && lies(outside_of(*fusion, value));
  }
  case Opcode::Clamp: return lies(maker.operand(0)) && lies(maker.operand(2));
  case Opcode::Narrow:
    return static_cast<double>(maker.attributes().integer("low")) >= bounds.low &&
           static_cast<double>(maker.attributes().integer("high")) <= bounds.high;
  case Opcode::Fusion: return lies(maker.region().results()[static_cast<size_t>(value.index)]);
  case Opcode::ReduceWindow: return simple_reducer(maker) == Opcode::Maximum && all_operands();
  // Conversions to other types round or wrap.
  case Opcode::Convert: return (bit_width(value.dtype()) >= 16 || is_byte(value.dtype())) && all_operands();
  case Opcode::Gather:
  case Opcode::Reverse: return lies(maker.operand(0));
  case Opcode::BroadcastInDim:
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
