// eliminate-zero-elements: replaces what is computed into or from empty tensors: those with a dim of extent
// 0, whatever the others are.
//
//   %e = multiply %x, %y : f32[0,4]                     ->   constant [] : f32[0,4]
//   %v = multiply %x, %y : f32[n,0]                     ->   zeros : f32[n,0]
//   %c = concatenate %x, %empty {dim = 0} : f32[4]      ->   concatenate %x
//   %d = dot %a, %b : f32[2,3]  over a dim of extent 0  ->   zeros
//
// - Requires: nothing.
// - Establishes: the only empty tensors are parameters, constants, loop values and, where a dim varies,
//   splats of zero; no instruction but while, if and call, and gathers, whose indices a run may check, has an
//   empty operand.
// - Breaks: nothing.
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

#include <algorithm>

namespace firn {
namespace {

bool is_empty(const Type& type) {
  if (!type.is_tensor()) return false;
  return std::any_of(type.dims.begin(), type.dims.end(), [](const Dim& dim) { return dim == Dim(0); });
}

Value empty_tensor(Instruction& instruction, GraphBuilder& builder) {
  const Type& type = instruction.type();
  bool is_text = type.dtype == DType::String;
  if (!type.is_static()) {
    if (is_text || instruction.num_operands() == 0 || splat_value(instruction.result())) return {};
    return make_splat(builder, type, 0);
  }
  if (is_text) return builder.constant(Literal::strings(type.static_dims(), {}));
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
  if (is_empty(type)) return empty_tensor(instruction, builder);
  if (instruction.num_operands() == 0) return {};
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
