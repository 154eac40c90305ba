// The evaluator's call of an op: one instruction with the actual values of its operands. Internal to
// evaluate*.cpp.
#pragma once

#include "compiler/graph/evaluate.h"

namespace firn::evaluation {

using Dims = std::vector<int64_t>;
using Values = std::vector<RuntimeValue>;

class Interpreter;

class OpCall {
public:
  OpCall(const Instruction& instruction, const Values& operands, Interpreter& interpreter)
      : instruction_(instruction), operands_(operands), interpreter_(interpreter) {}

  const Instruction& instruction() const { return instruction_; }
  Opcode opcode() const { return instruction_.opcode(); }
  const Attributes& attributes() const { return instruction_.attributes(); }
  int64_t integer(std::string_view name, int64_t fallback = 0) const {
    return attributes().integer(name, fallback);
  }
  bool flag(std::string_view name) const { return attributes().flag(name); }
  Dims ints(std::string_view name) const; // empty if absent
  DType result_dtype(int result = 0) const { return instruction_.type(result).dtype; }
  // The extents of a result's declared type, with symbols replaced by their present values.
  Expected<Dims> result_dims(int result = 0) const { return extents(instruction_.type(result)); }
  // The extents of any type, with symbols replaced by their present values.
  Expected<Dims> extents(const Type& type) const;

  int num_operands() const { return static_cast<int>(operands_.size()); }
  const RuntimeValue& value(int index) const { return operands_[static_cast<size_t>(index)]; }
  const LiteralRef& literal(int index) const { return value(index).tensor; }
  const Literal& tensor(int index) const { return *literal(index); }

  // A message that names the instruction.
  Diagnostic fail(const std::string& message) const;
  Diagnostic unsupported(const std::string& message) const;
  // A zeroed literal, unless it is larger than the interpreter may make.
  Expected<std::shared_ptr<Literal>> allocate(DType dtype, Dims dims) const;
  Result check_size(DType dtype, const Dims& dims) const;
  // Counts work, in units of a scalar region's step, against the interpreter's limit.
  Result spend(double steps) const;
  Expected<Values> run_region(int region, Values arguments) const;
  Interpreter& interpreter() const { return interpreter_; }

private:
  const Instruction& instruction_;
  const Values& operands_;
  Interpreter& interpreter_;
};

// The families of ops. Each function handles the opcodes that dispatch() in evaluate.cpp sends to it.
Expected<Values> evaluate_elementwise(const OpCall& call);
Expected<Values> evaluate_convert(const OpCall& call);
Expected<Values> evaluate_movement(const OpCall& call);
Expected<Values> evaluate_gather(const OpCall& call);
Expected<Values> evaluate_scatter(const OpCall& call);
Expected<Values> evaluate_reduce(const OpCall& call);
Expected<Values> evaluate_arg_reduce(const OpCall& call);
Expected<Values> evaluate_cumulative(const OpCall& call);
Expected<Values> evaluate_reduce_window(const OpCall& call);
Expected<Values> evaluate_select_and_scatter(const OpCall& call);
Expected<Values> evaluate_sort(const OpCall& call);
Expected<Values> evaluate_top_k(const OpCall& call);
Expected<Values> evaluate_dot(const OpCall& call);
Expected<Values> evaluate_convolution(const OpCall& call);
Expected<Values> evaluate_quantize(const OpCall& call);
Expected<Values> evaluate_dequantize(const OpCall& call);
Expected<Values> evaluate_shape(const OpCall& call);
Expected<Values> evaluate_random(const OpCall& call);
Expected<Values> evaluate_container(const OpCall& call);
Expected<Values> evaluate_text(const OpCall& call);

// "f32[2,3]": a literal's type for messages.
inline std::string describe(const Literal& literal) {
  return literal.type().to_string();
}
// The product of dims[begin..end).
int64_t product(const Dims& dims, size_t begin, size_t end);
inline int64_t product(const Dims& dims) {
  return product(dims, 0, dims.size());
}
inline Values one(LiteralRef literal) {
  return {RuntimeValue(std::move(literal))};
}

} // namespace firn::evaluation
