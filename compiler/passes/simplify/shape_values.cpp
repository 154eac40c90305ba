// Integer tensors as expressions over the symbols of dims.
#include "compiler/passes/simplify/shape_values.h"

#include "compiler/graph/evaluate.h"
#include "compiler/graph/symbolic_elements.h"
#include "compiler/graph/widening.h"

#include <algorithm>

namespace firn {
namespace {

using Exprs = std::vector<IntExpr>;

constexpr int64_t kMaximumElements = 256; // shapes are short; longer integer tensors are data

bool is_small_integer(const Type& type) {
  return type.is_tensor() && type.is_static() && type.num_elements() <= kMaximumElements &&
         (is_integer(type.dtype) || type.dtype == DType::Bool);
}

bool all_numbers(const Exprs& exprs) {
  return std::all_of(exprs.begin(), exprs.end(), [](const IntExpr& expr) { return expr.is_constant(); });
}

Exprs from_literal(const Literal& literal) {
  Exprs exprs;
  for (int64_t value : literal.to_ints()) exprs.emplace_back(value);
  return exprs;
}

// The literal of `exprs`, which are numbers.
LiteralRef to_literal(const Exprs& exprs, const Type& type) {
  std::vector<int64_t> values;
  for (const IntExpr& expr : exprs) values.push_back(expr.value());
  return Literal::of(type.dtype, type.static_dims(), values);
}

} // namespace

std::optional<std::vector<IntExpr>> ShapeValues::of(Value value) {
  if (value.index != 0 || !value.type().is_tensor() || !is_small_integer(value.type())) return std::nullopt;
  if (auto found = known_.find(value.def); found != known_.end()) return found->second;
  auto result = compute(value);
  known_[value.def] = result;
  return result;
}

LiteralRef ShapeValues::literal(Value value) {
  if (value.def->is(Opcode::Constant))
    return value.def->literal()->is_opaque() ? nullptr : value.def->literal();
  auto exprs = of(value);
  return exprs && all_numbers(*exprs) ? to_literal(*exprs, value.type()) : nullptr;
}

// Evaluates an instruction whose operands are all numbers.
std::optional<Exprs> ShapeValues::evaluate(Value value) {
  std::vector<LiteralRef> operands;
  for (Value operand : value.def->operands()) {
    if (!operand.type().is_tensor() || !operand.type().is_static() ||
        operand.type().num_elements() > kMaximumElements)
      return std::nullopt;
    LiteralRef known = literal(operand);
    if (!known) return std::nullopt;
    operands.push_back(known);
  }
  if (value.def->num_results() != 1) return std::nullopt;
  auto results = evaluate_instruction(*value.def, operands);
  if (!results || (*results)[0]->num_elements() != value.type().num_elements()) return std::nullopt;
  return from_literal(*(*results)[0]);
}

std::optional<Exprs> ShapeValues::compute(Value value) {
  const Instruction& instruction = *value.def;
  if (instruction.is(Opcode::Parameter) || widens_bytes(instruction)) return std::nullopt;
  if (instruction.is(Opcode::Constant))
    return instruction.literal()->is_opaque() ? std::nullopt
                                              : std::optional(from_literal(*instruction.literal()));
  if (instruction.is(Opcode::DimSize)) {
    auto extent = compute_dim_size(instruction);
    return extent ? std::optional(Exprs{*extent}) : std::nullopt;
  }
  if (instruction.num_regions() > 0 && !instruction.is(Opcode::Reduce)) return std::nullopt;
  std::vector<Exprs> operands;
  for (Value operand : instruction.operands()) {
    auto exprs = of(operand);
    if (!exprs) return evaluate(value);
    operands.push_back(std::move(*exprs));
  }
  bool numbers = std::all_of(operands.begin(), operands.end(), all_numbers);
  if (numbers) return evaluate(value);
  return compute_elements(instruction, operands);
}

} // namespace firn
