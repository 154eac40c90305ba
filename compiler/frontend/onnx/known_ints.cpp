// Integers made of symbolic dims, carried as expressions through the ops that shape arithmetic is made of.
#include "compiler/frontend/onnx/import_state.h"

#include <algorithm>
#include <cstdlib>

namespace firn::onnx {
namespace {

using Elements = std::vector<IntExpr>;

__extension__ typedef __int128 Wide;

Wide largest(const IntExpr& value) {
  Wide result = value.constant_part() < 0 ? -static_cast<Wide>(value.constant_part())
                                          : static_cast<Wide>(value.constant_part());
  for (const auto& term : value.terms())
    result = std::max(result, static_cast<Wide>(std::abs(term.coefficient)));
  return result;
}

// Arithmetic that gives nothing where an expression would leave what dims may be.
std::optional<IntExpr> checked(const IntExpr& value) {
  return is_safe_dim(value) ? std::optional(value) : std::nullopt;
}

std::optional<IntExpr> multiply(const IntExpr& lhs, const IntExpr& rhs) {
  Wide products = static_cast<Wide>(lhs.terms().size() + 1) * static_cast<Wide>(rhs.terms().size() + 1);
  if (largest(lhs) * largest(rhs) * products > Wide{1} << 60) return std::nullopt;
  return checked(lhs * rhs);
}

std::optional<IntExpr> divide(const IntExpr& lhs, const IntExpr& rhs) {
  if (lhs == rhs && rhs.lower_bound() > 0) return IntExpr(1);
  if (!rhs.is_constant() || rhs.value() <= 0 || lhs.lower_bound() < 0) return std::nullopt;
  return checked(floor_div(lhs, rhs));
}

std::optional<IntExpr> remainder(const IntExpr& lhs, const IntExpr& rhs) {
  if (!rhs.is_constant() || rhs.value() <= 0 || lhs.lower_bound() < 0) return std::nullopt;
  return checked(floor_mod(lhs, rhs));
}

// 1 or 0 where bounds decide the comparison.
std::optional<IntExpr> compare(const std::string& direction, const IntExpr& lhs, const IntExpr& rhs) {
  IntExpr difference = lhs - rhs;
  int64_t low = difference.lower_bound(), high = difference.upper_bound();
  auto decide = [](bool yes, bool no) -> std::optional<IntExpr> {
    if (yes) return IntExpr(1);
    if (no) return IntExpr(0);
    return std::nullopt;
  };
  bool equal = low == 0 && high == 0, apart = low > 0 || high < 0;
  if (direction == "eq") return decide(equal, apart);
  if (direction == "ne") return decide(apart, equal);
  if (direction == "lt") return decide(high < 0, low >= 0);
  if (direction == "le") return decide(high <= 0, low > 0);
  if (direction == "gt") return decide(low > 0, high <= 0);
  return decide(low >= 0, high < 0);
}

std::optional<IntExpr> binary(const Instruction& instruction, const IntExpr& lhs, const IntExpr& rhs) {
  if (!is_safe_dim(lhs) || !is_safe_dim(rhs)) return std::nullopt;
  switch (instruction.opcode()) {
  case Opcode::Add: return checked(lhs + rhs);
  case Opcode::Subtract: return checked(lhs - rhs);
  case Opcode::Multiply: return multiply(lhs, rhs);
  case Opcode::Divide: return divide(lhs, rhs);
  case Opcode::Remainder: return remainder(lhs, rhs);
  case Opcode::Maximum: return checked(max(lhs, rhs));
  case Opcode::Minimum: return checked(min(lhs, rhs));
  case Opcode::Compare: return compare(instruction.word("direction"), lhs, rhs);
  case Opcode::And:
  case Opcode::Or: {
    if (!lhs.is_constant() || !rhs.is_constant() || instruction.type().dtype != DType::Bool)
      return std::nullopt;
    bool both = instruction.is(Opcode::And);
    return IntExpr(both ? lhs.value() & rhs.value() : lhs.value() | rhs.value());
  }
  default: return std::nullopt;
  }
}

std::optional<Elements> convert(const Elements& from, DType to) {
  if (is_integer(to)) return to == DType::I64 || to == DType::I32 ? std::optional(from) : std::nullopt;
  Elements result;
  for (const IntExpr& value : from) {
    auto truth = compare("ne", value, 0);
    if (!truth) return std::nullopt;
    result.push_back(*truth);
  }
  return result;
}

std::optional<Elements> gather(const Instruction& instruction, const Elements& from,
                               const Elements& indices) {
  if (instruction.operand(0).rank() != 1) return std::nullopt;
  auto size = static_cast<int64_t>(from.size());
  Elements result;
  for (const IntExpr& index : indices) {
    if (!index.is_constant() || index.value() < -size || index.value() >= size) return std::nullopt;
    result.push_back(from[static_cast<size_t>(index.value() < 0 ? index.value() + size : index.value())]);
  }
  return result;
}

std::optional<Elements> slice(const Instruction& instruction, const Elements& from) {
  if (instruction.operand(0).rank() != 1) return std::nullopt;
  const Attributes& attributes = instruction.attributes();
  Elements result;
  int64_t limit = attributes.ints("limits")[0];
  if (limit < 0) return from;
  for (int64_t i = attributes.ints("starts")[0]; i < limit; i += attributes.ints("strides")[0])
    result.push_back(from[static_cast<size_t>(i)]);
  return result;
}

std::optional<Elements> broadcast(const Instruction& instruction, const Elements& from) {
  std::vector<int64_t> dims = instruction.type().static_dims();
  std::vector<int64_t> result_strides = row_major_strides(dims);
  const Type& operand = instruction.operand(0).type();
  std::vector<int64_t> operand_strides = row_major_strides(operand.static_dims());
  const auto& map = instruction.attributes().ints("dims");
  Elements result;
  for (int64_t i = 0; i < instruction.type().num_elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < map.size(); ++d) {
      if (operand.dims[d] == Dim(1)) continue;
      auto to = static_cast<size_t>(map[d]);
      at += i / result_strides[to] % dims[to] * operand_strides[d];
    }
    result.push_back(from[static_cast<size_t>(at)]);
  }
  return result;
}

std::optional<Elements> reduce(const Instruction& instruction, const Elements& from,
                               const Elements& initial) {
  auto reducer = simple_reducer(instruction);
  bool known = reducer == Opcode::Add || reducer == Opcode::Multiply;
  if (!known || instruction.num_operands() != 2 || instruction.operand(0).rank() != 1 ||
      instruction.type().rank() != 0)
    return std::nullopt;
  IntExpr total = initial[0];
  for (const IntExpr& value : from) {
    auto next = !is_safe_dim(value)      ? std::nullopt
                : reducer == Opcode::Add ? checked(total + value)
                                         : multiply(total, value);
    if (!next) return std::nullopt;
    total = *next;
  }
  return Elements{total};
}

bool is_known_type(const Type& type) {
  bool dtype = type.dtype == DType::I64 || type.dtype == DType::I32 || type.dtype == DType::Bool;
  return type.is_static() && dtype && type.num_elements() <= KnownInts::kMaxKnown;
}

} // namespace

std::optional<Elements> KnownInts::find(Value value) const {
  if (!value || value.index != 0) return std::nullopt;
  auto found = elements_.find(value.def);
  if (found != elements_.end()) return found->second;
  const LiteralRef& literal = value.def->literal();
  if (!value.def->is(Opcode::Constant) || literal->is_opaque() || literal->num_elements() > kMaxKnown)
    return std::nullopt;
  if (!is_integer(literal->dtype()) && literal->dtype() != DType::Bool) return std::nullopt;
  auto values = literal->to_ints();
  return Elements(values.begin(), values.end());
}

void KnownInts::forget_all(const Instruction& instruction) {
  elements_.erase(&instruction);
  for (int i = 0; i < instruction.num_regions(); ++i)
    for (const auto& inner : instruction.region(i).instructions()) forget_all(*inner);
}

std::optional<Elements> KnownInts::compute(const Instruction& instruction) const {
  if (!is_known_type(instruction.type())) return std::nullopt;
  if (instruction.is(Opcode::DimSize)) {
    const Dim& dim =
        instruction.operand(0).type().dims[static_cast<size_t>(instruction.attributes().integer("dim"))];
    if (dim.counted || !is_safe_dim(dim.extent)) return std::nullopt;
    return Elements{dim.extent};
  }
  std::vector<Elements> operands;
  for (Value operand : instruction.operands()) {
    auto known = find(operand);
    if (!known) return std::nullopt;
    operands.push_back(std::move(*known));
  }
  if (operands.empty()) return std::nullopt;
  switch (instruction.opcode()) {
  case Opcode::Reshape: return operands[0];
  case Opcode::BroadcastInDim: return broadcast(instruction, operands[0]);
  case Opcode::Convert: return convert(operands[0], instruction.type().dtype);
  case Opcode::Gather: return gather(instruction, operands[0], operands[1]);
  case Opcode::Slice: return slice(instruction, operands[0]);
  case Opcode::Reduce: return reduce(instruction, operands[0], operands[1]);
  case Opcode::Concatenate: {
    if (instruction.attributes().integer("dim") != 0) return std::nullopt;
    Elements result;
    for (const Elements& each : operands) result.insert(result.end(), each.begin(), each.end());
    return result;
  }
  default: break;
  }
  bool is_binary = op_info(instruction.opcode()).op_class == OpClass::Binary;
  bool is_other =
      instruction.is(Opcode::Select) || instruction.is(Opcode::Not) || instruction.is(Opcode::Negate);
  if (!is_binary && !is_other) return std::nullopt;
  Elements result;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    std::optional<IntExpr> value;
    const IntExpr& first = operands[0][i];
    if (is_binary)
      value = binary(instruction, first, operands[1][i]);
    else if (instruction.is(Opcode::Select) && first.is_constant())
      value = operands[first.value() ? 1 : 2][i];
    else if (instruction.is(Opcode::Not) && first.is_constant() && instruction.type().dtype == DType::Bool)
      value = IntExpr(first.value() ? 0 : 1);
    else if (instruction.is(Opcode::Negate) && is_safe_dim(first))
      value = IntExpr(0) - first;
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

} // namespace firn::onnx
