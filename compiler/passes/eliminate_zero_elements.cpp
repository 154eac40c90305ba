// eliminate-zero-elements: replaces what is computed into or from empty tensors.
//
//   %e = multiply %x, %y : f32[0,4]                     ->   constant [] : f32[0,4]
//   %c = concatenate %x, %empty {dim = 0} : f32[4]      ->   concatenate %x
//   %d = dot %a, %b : f32[2,3]  over a dim of extent 0  ->   zeros
//
// - Requires: nothing.
// - Establishes: the only static empty tensors are parameters, constants and loop values; no instruction but
//   while, if and call has an empty operand.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

bool is_empty(const Type& type) {
  if (!type.is_tensor()) return false;
  for (const Dim& dim : type.dims)
    if (dim.is_static() && dim.value() == 0) return type.is_static();
  return false;
}

Value empty_constant(GraphBuilder& builder, const Type& type) {
  if (type.dtype == DType::String) return builder.constant(Literal::strings(type.static_dims(), {}));
  return builder.constant(std::make_shared<Literal>(type.dtype, type.static_dims()));
}

Value drop_empty_operands(Instruction& concatenate, GraphBuilder& builder) {
  std::vector<Value> operands;
  for (Value operand : concatenate.operands())
    if (!is_empty(operand.type())) operands.push_back(operand);
  if (operands.size() == concatenate.operands().size() || operands.empty()) return {};
  return builder.concatenate(operands, concatenate.attributes().integer("dim"));
}

Value eliminate(Instruction& instruction, const PassOptions&) {
  if (instruction.num_results() != 1 || !instruction.type().is_tensor()) return {};
  if (has_trait(instruction.opcode(), Captures) || instruction.is(Opcode::Call)) return {};
  const Type& type = instruction.type();
  GraphBuilder builder(*instruction.parent(), &instruction);
  if (is_empty(type)) return empty_constant(builder, type);
  if (!type.is_static() || instruction.num_operands() == 0) return {};
  Value operand = instruction.operand(0);
  switch (instruction.opcode()) {
  case Opcode::Concatenate: return drop_empty_operands(instruction, builder);
  case Opcode::Dot:
  case Opcode::Convolution:
    return is_empty(operand.type()) || is_empty(instruction.operand(1).type()) ? make_splat(builder, type, 0)
                                                                               : Value{};
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
    return is_empty(operand.type()) ? make_broadcast(builder, instruction.operand(1), type, {}) : Value{};
  case Opcode::Pad:
    return is_empty(operand.type()) ? make_broadcast(builder, instruction.operand(1), type, {}) : Value{};
  case Opcode::DynamicUpdateSlice:
  case Opcode::ScatterElements:
  case Opcode::ScatterND: return is_empty(instruction.operand(1).type()) ? operand : Value{};
  default: return {};
  }
}

} // namespace

bool eliminate_zero_elements(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, eliminate);
}

} // namespace firn
