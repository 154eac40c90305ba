// Integer tensors as expressions over the symbols of dims.
#include "compiler/passes/shape_values.h"

#include "compiler/graph/builder.h"
#include "compiler/graph/evaluate.h"
#include "compiler/support/int_expr_size.h"

#include <algorithm>

namespace firn {
namespace {

using Exprs = std::vector<IntExpr>;

constexpr int64_t kMaximumElements = 256; // shapes are short; longer integer tensors are data
constexpr size_t kMaximumNodes = 256;     // of an expression, so that no operation on it is slow
constexpr int64_t kMaximumNumber = int64_t{1}
                                   << 40; // products of such numbers stay within an expression's range

bool is_small_integer(const Type& type) {
  return type.is_tensor() && type.is_static() && type.num_elements() <= kMaximumElements &&
         (is_integer(type.dtype) || type.dtype == DType::Bool);
}

bool all_numbers(const Exprs& exprs) {
  return std::all_of(exprs.begin(), exprs.end(), [](const IntExpr& expr) { return expr.is_constant(); });
}

bool in_range(const IntExpr& expr) {
  if (!expr.is_constant()) {
    for (const IntExpr::Term& term : expr.terms())
      if (term.coefficient > kMaximumNumber || term.coefficient < -kMaximumNumber) return false;
  }
  return expr.constant_part() <= kMaximumNumber && expr.constant_part() >= -kMaximumNumber &&
         !is_larger_than(expr, kMaximumNodes);
}

std::optional<IntExpr> combine(Opcode opcode, const IntExpr& lhs, const IntExpr& rhs) {
  if (!in_range(lhs) || !in_range(rhs)) return std::nullopt;
  switch (opcode) {
  case Opcode::Add: return lhs + rhs;
  case Opcode::Subtract: return lhs - rhs;
  case Opcode::Multiply: {
    bool bounded = lhs.is_constant() || rhs.is_constant() || lhs.terms().size() * rhs.terms().size() <= 64;
    return bounded ? std::optional(lhs * rhs) : std::nullopt;
  }
  case Opcode::Divide: // truncation is rounding down for what is not negative
    if (!rhs.is_constant() || rhs.value() <= 0 || lhs.lower_bound() < 0) return std::nullopt;
    return floor_div(lhs, rhs);
  case Opcode::Remainder:
    if (!rhs.is_constant() || rhs.value() <= 0 || lhs.lower_bound() < 0) return std::nullopt;
    return floor_mod(lhs, rhs);
  case Opcode::Maximum: return max(lhs, rhs);
  case Opcode::Minimum: return min(lhs, rhs);
  default: return std::nullopt;
  }
}

// lhs <direction> rhs where the symbols' bounds decide it.
std::optional<bool> decide(const std::string& direction, const IntExpr& lhs, const IntExpr& rhs) {
  if (!in_range(lhs) || !in_range(rhs)) return std::nullopt;
  IntExpr difference = lhs - rhs;
  int64_t low = difference.lower_bound(), high = difference.upper_bound();
  bool never_equal = low > 0 || high < 0, always_equal = low == 0 && high == 0;
  auto known = [](bool yes, bool no) {
    return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt;
  };
  if (direction == "eq") return known(always_equal, never_equal);
  if (direction == "ne") return known(never_equal, always_equal);
  if (direction == "lt") return known(high < 0, low >= 0);
  if (direction == "le") return known(high <= 0, low > 0);
  if (direction == "gt") return known(low > 0, high <= 0);
  return known(low >= 0, high < 0);
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

std::optional<Exprs> gather_vector(const Exprs& operand, const Exprs& indices) {
  Exprs result;
  for (const IntExpr& index : indices) {
    if (!index.is_constant()) return std::nullopt;
    int64_t at = index.value() < 0 ? index.value() + static_cast<int64_t>(operand.size()) : index.value();
    if (at < 0 || at >= static_cast<int64_t>(operand.size())) return std::nullopt;
    result.push_back(operand[static_cast<size_t>(at)]);
  }
  return result;
}

Exprs slice_vector(const Exprs& operand, const Attributes& attributes) {
  Exprs result;
  for (int64_t i = attributes.ints("starts")[0]; i < attributes.ints("limits")[0];
       i += attributes.ints("strides")[0])
    result.push_back(operand[static_cast<size_t>(i)]);
  return result;
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

// Everything that has numbers for operands, by the evaluator.
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
  if (instruction.is(Opcode::Parameter)) return std::nullopt;
  if (instruction.is(Opcode::Constant))
    return instruction.literal()->is_opaque() ? std::nullopt
                                              : std::optional(from_literal(*instruction.literal()));
  if (instruction.is(Opcode::DimSize)) {
    const Dim& dim =
        instruction.operand(0).type().dims[static_cast<size_t>(instruction.attributes().integer("dim"))];
    return Exprs{dim.extent};
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
  size_t count = static_cast<size_t>(value.type().num_elements());
  Exprs result;
  switch (instruction.opcode()) {
  case Opcode::Convert: return is_integer(value.dtype()) ? std::optional(operands[0]) : std::nullopt;
  case Opcode::Reshape: return operands[0];
  case Opcode::Negate:
    for (const IntExpr& expr : operands[0]) result.push_back(IntExpr(0) - expr);
    return result;
  case Opcode::BroadcastInDim:
    if (operands[0].size() == 1) return Exprs(count, operands[0][0]);
    return operands[0].size() == count ? std::optional(operands[0]) : std::nullopt;
  case Opcode::Concatenate:
    if (value.rank() != 1) return std::nullopt;
    for (const Exprs& part : operands) result.insert(result.end(), part.begin(), part.end());
    return result;
  case Opcode::Slice:
    return value.rank() == 1 ? std::optional(slice_vector(operands[0], instruction.attributes()))
                             : std::nullopt;
  case Opcode::Gather:
    return instruction.operand(0).rank() == 1 ? gather_vector(operands[0], operands[1]) : std::nullopt;
  case Opcode::Compare:
    for (size_t i = 0; i < count; ++i) {
      auto decided = decide(instruction.word("direction"), operands[0][i], operands[1][i]);
      if (!decided) return std::nullopt;
      result.emplace_back(*decided ? 1 : 0);
    }
    return result;
  case Opcode::Select:
    for (size_t i = 0; i < count; ++i) {
      if (!operands[0][i].is_constant()) return std::nullopt;
      result.push_back(operands[operands[0][i].value() ? 1 : 2][i]);
    }
    return result;
  case Opcode::Reduce: {
    auto reducer = simple_reducer(instruction);
    if (!reducer || operands.size() != 2 || count != 1) return std::nullopt;
    IntExpr total = operands[1][0];
    for (const IntExpr& expr : operands[0]) {
      auto next = combine(*reducer, total, expr);
      if (!next) return std::nullopt;
      total = *next;
    }
    return Exprs{total};
  }
  default:
    if (operands.size() != 2 || operands[0].size() != operands[1].size() ||
        !is_elementwise(instruction.opcode()))
      return std::nullopt;
    for (size_t i = 0; i < count; ++i) {
      auto combined = combine(instruction.opcode(), operands[0][i], operands[1][i]);
      if (!combined) return std::nullopt;
      result.push_back(*combined);
    }
    return result;
  }
}

} // namespace firn
