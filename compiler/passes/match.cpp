// Questions that rewrite rules ask about values.
#include "compiler/passes/match.h"

#include "compiler/plan/narrow_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace firn {

const Literal* constant_literal(Value value) {
  if (!value.def->is(Opcode::Constant)) return nullptr;
  const Literal* literal = value.def->literal().get();
  return literal && !literal->is_opaque() ? literal : nullptr;
}

bool is_arithmetic(Value value) {
  if (!value.type().is_tensor()) return false;
  DType dtype = value.dtype();
  return is_float(dtype) || is_integer(dtype);
}

// The literal behind a value whose elements are all one real number; null: they are not.
static const Literal* splat_literal(Value value) {
  if (!value.type().is_tensor()) return nullptr;
  while (value.def->is(Opcode::BroadcastInDim) || value.def->is(Opcode::Reshape) ||
         value.def->is(Opcode::Transpose) || value.def->is(Opcode::Copy))
    value = value.def->operand(0);
  const Literal* literal = constant_literal(value);
  bool is_splat = literal && literal->num_elements() > 0 && !is_complex(literal->dtype()) &&
                  literal->dtype() != DType::String && literal->is_splat();
  return is_splat ? literal : nullptr;
}

std::optional<double> splat_value(Value value) {
  const Literal* literal = splat_literal(value);
  if (!literal) return std::nullopt;
  const double number = literal->get_double(0);
  bool is_rounded = is_integer(literal->dtype()) && std::abs(number) >= 0x1p53;
  return is_rounded ? std::nullopt : std::optional(number);
}

bool is_splat_of(Value value, const Literal& number) {
  const Literal* literal = splat_literal(value);
  if (!literal || literal->dtype() != number.dtype()) return false;
  return is_integer(number.dtype()) ? literal->get_int(0) == number.get_int(0)
                                    : literal->get_double(0) == number.get_double(0);
}

bool has_one_use(Value value) {
  return value.def->num_uses(value.index) == 1;
}

namespace {

bool is_non_negative_within(Value value, int depth) {
  if (depth == 0 || !is_arithmetic(value)) return false;
  if (is_unsigned(value.dtype())) return true;
  if (auto splat = splat_value(value)) return *splat >= 0;
  auto operand = [&](int i) { return is_non_negative_within(value.def->operand(i), depth - 1); };
  if (has_trait(value.def->opcode(), NonNegative)) return true;
  if (has_trait(value.def->opcode(), Strided)) return operand(0);
  switch (value.def->opcode()) {
  case Opcode::Multiply: return value.def->operand(0) == value.def->operand(1) || (operand(0) && operand(1));
  case Opcode::Add:
  case Opcode::Divide:
  case Opcode::Minimum: return operand(0) && operand(1);
  case Opcode::Maximum: return operand(0) || operand(1);
  case Opcode::Clamp: return operand(0) && operand(2);
  case Opcode::Select: return operand(1) && operand(2);
  case Opcode::Dequantize: return value.def->num_operands() == 2 && operand(0) && operand(1);
  case Opcode::Reduce:
  case Opcode::ReduceWindow:
    return value.def->num_operands() == 2 && simple_reducer(*value.def) && operand(0) && operand(1);
  default: return false;
  }
}

} // namespace

bool is_non_negative(Value value) {
  return is_non_negative_within(value, 6);
}

Value make_splat(GraphBuilder& builder, const Type& type, double value) {
  return make_broadcast(builder, builder.scalar(type.dtype, value), type, {});
}

Value make_broadcast(GraphBuilder& builder, Value operand, const Type& result, std::vector<int64_t> dims) {
  if (operand.type() == result && is_identity_permutation(dims)) return operand;
  Type type = result;
  type.dtype = operand.dtype();
  return builder.make_typed(Opcode::BroadcastInDim, {operand}, {type}, {{"dims", std::move(dims)}})->result();
}

bool is_identity_permutation(const std::vector<int64_t>& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::vector<int64_t> inverse_permutation(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

std::vector<int64_t> first_dims(int64_t count) {
  std::vector<int64_t> dims(static_cast<size_t>(count));
  std::iota(dims.begin(), dims.end(), int64_t{0});
  return dims;
}

bool contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool same_dims(const Type& lhs, const Type& rhs) {
  return lhs.dims == rhs.dims;
}

std::optional<Opcode> plain_reducer(const Instruction& instruction) {
  if (instruction.num_operands() != 2 || !is_arithmetic(instruction.operand(0))) return std::nullopt;
  auto reducer = simple_reducer(instruction);
  if (!reducer || !has_trait(*reducer, Associative) || has_trait(*reducer, OnBits)) return std::nullopt;
  auto identity = reducer_identity(*reducer, instruction.operand(0).dtype());
  return is_splat_of(instruction.operand(1), *identity) ? reducer : std::nullopt;
}

std::optional<ChannelValue> channel_value(Value value, GraphBuilder& builder) {
  const Instruction& def = *value.def;
  if (def.is(Opcode::BroadcastInDim)) {
    Value source = def.operand(0);
    if (source.rank() > 1) return std::nullopt;
    return ChannelValue{source, source.rank() == 0 ? -1 : def.attributes().ints("dims")[0]};
  }
  if (!constant_literal(value) || !value.type().is_static()) return std::nullopt;
  int64_t channel = -1;
  for (int d = 0; d < value.rank(); ++d) {
    if (value.dim(d) == 1) continue;
    if (channel >= 0) return std::nullopt;
    channel = d;
  }
  if (channel < 0) return ChannelValue{builder.reshape(value, {}), -1};
  return ChannelValue{builder.reshape(value, {value.type().dims[static_cast<size_t>(channel)]}), channel};
}

bool is_movement(Opcode opcode) {
  return op_info(opcode).op_class == OpClass::Movement;
}

bool looks_up_bytes(const Instruction& instruction) {
  if (!instruction.is(Opcode::Gather)) return false;
  const Type &table = instruction.operand(0).type(), &indices = instruction.operand(1).type();
  return indices.is_tensor() && indices.dtype == DType::U8 && table.rank() == 1 && table.is_static() &&
         table.dim(0) == kByteValues;
}

bool has_bounds(const Type& type) {
  if (!type.is_tensor()) return false;
  std::vector<int64_t> bounds;
  for (const Dim& dim : type.dims) {
    bounds.push_back(dim.extent.upper_bound());
    if (dim.extent.lower_bound() < 0 || bounds.back() == INT64_MAX) return false;
  }
  return checked_num_elements(bounds).has_value();
}

int64_t max_elements(const Type& type) {
  return type.at_bound().num_elements();
}

int64_t contracted_steps(const Instruction& dot, int operand) {
  int64_t steps = 1;
  for (int64_t dim : dot.attributes().ints(operand == 0 ? "lhs_contract" : "rhs_contract"))
    steps *= dot.operand(operand).dim(static_cast<int>(dim));
  return steps;
}

bool holds_all(DType to, DType from) {
  if (to == from || from == DType::Bool)
    return to == from || is_integer(to) || to == DType::F32 || to == DType::F64;
  int wide = bit_width(to), narrow = bit_width(from);
  if (is_integer(from) && is_integer(to)) {
    if (is_signed(from)) return is_signed(to) && wide >= narrow;
    return is_unsigned(to) ? wide >= narrow : wide > narrow;
  }
  if (is_integer(from)) {
    int digits = is_signed(from) ? narrow - 1 : narrow;
    return (to == DType::F64 && digits <= 53) || (to == DType::F32 && digits <= 24);
  }
  bool from_known = from == DType::F16 || from == DType::BF16 || from == DType::F32;
  return from_known && ((to == DType::F64) || (to == DType::F32 && from != DType::F64));
}

bool has_few_rows(const Instruction& contraction, int weights) {
  if (contraction.is(Opcode::Convolution)) return false;
  const Type& rows = contraction.operand(1 - weights).type();
  return has_bounds(rows) && max_elements(rows) <= plan::kFewRows * contracted_steps(contraction, weights);
}

} // namespace firn
