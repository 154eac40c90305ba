// Composition of graph ops by importers and passes.
#include "compiler/graph/builder.h"

#include <cmath>
#include <limits>

namespace firn {

Instruction* GraphBuilder::make(Opcode opcode, std::vector<Value> operands, Attributes attributes) {
  auto types = infer_types(opcode, operands, attributes);
  FIRN_CHECK(types, std::string("building ") + std::string(opcode_name(opcode)) + " at '" + location_ +
                        "': " + types.error().message);
  return make_typed(opcode, std::move(operands), std::move(*types), std::move(attributes));
}

Instruction* GraphBuilder::make_typed(Opcode opcode, std::vector<Value> operands, std::vector<Type> types,
                                      Attributes attributes) {
  Instruction* made =
      region_->append(opcode, std::move(operands), std::move(types), std::move(attributes), before_);
  made->set_location(location_);
  return made;
}

Value GraphBuilder::constant(LiteralRef literal) {
  Instruction* made = region_->append_constant(std::move(literal), before_);
  made->set_location(location_);
  return made->result();
}

Value GraphBuilder::splat_like(Value like, double value) {
  return broadcast_to(scalar(like.dtype(), value), like.type().dims);
}

Value GraphBuilder::binary(Opcode opcode, Value lhs, Value rhs, Attributes attributes) {
  auto dims = broadcast_dims(lhs.type().dims, rhs.type().dims);
  FIRN_CHECK(dims, "binary op on shapes that do not broadcast: " + lhs.type().to_string() + " and " +
                       rhs.type().to_string());
  return op(opcode, {broadcast_to(lhs, *dims), broadcast_to(rhs, *dims)}, std::move(attributes));
}

Value GraphBuilder::select(Value condition, Value on_true, Value on_false) {
  auto dims = broadcast_dims(on_true.type().dims, on_false.type().dims);
  if (dims) dims = broadcast_dims(*dims, condition.type().dims);
  FIRN_CHECK(dims, "select on shapes that do not broadcast");
  return op(Opcode::Select,
            {broadcast_to(condition, *dims), broadcast_to(on_true, *dims), broadcast_to(on_false, *dims)});
}

Value GraphBuilder::convert(Value operand, DType dtype) {
  if (operand.dtype() == dtype) return operand;
  return op(Opcode::Convert, {operand}, {{"to", dtype}});
}

Value GraphBuilder::broadcast_to(Value operand, const std::vector<Dim>& dims) {
  if (operand.type().dims == dims) return operand;
  int64_t shift = static_cast<int64_t>(dims.size()) - operand.rank();
  FIRN_CHECK(shift >= 0, "broadcast to a smaller rank");
  std::vector<int64_t> map;
  for (int64_t i = 0; i < operand.rank(); ++i) map.push_back(i + shift);
  std::vector<Type> types{Type::tensor(operand.dtype(), dims)};
  return make_typed(Opcode::BroadcastInDim, {operand}, std::move(types), {{"dims", std::move(map)}})
      ->result();
}

Value GraphBuilder::reshape(Value operand, std::vector<Dim> dims) {
  if (operand.type().dims == dims) return operand;
  std::vector<Type> types{Type::tensor(operand.dtype(), std::move(dims))};
  return make_typed(Opcode::Reshape, {operand}, std::move(types))->result();
}

Value GraphBuilder::transpose(Value operand, std::vector<int64_t> permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i) identity &= permutation[i] == static_cast<int64_t>(i);
  if (identity) return operand;
  return op(Opcode::Transpose, {operand}, {{"permutation", std::move(permutation)}});
}

Value GraphBuilder::slice(Value operand, std::vector<int64_t> starts, std::vector<int64_t> limits,
                          std::vector<int64_t> strides) {
  return op(Opcode::Slice, {operand},
            {{"starts", std::move(starts)}, {"limits", std::move(limits)}, {"strides", std::move(strides)}});
}

Value GraphBuilder::concatenate(std::vector<Value> operands, int64_t dim) {
  if (operands.size() == 1) return operands[0];
  return op(Opcode::Concatenate, std::move(operands), {{"dim", dim}});
}

Value GraphBuilder::pad(Value operand, Value value, std::vector<int64_t> low, std::vector<int64_t> high) {
  std::vector<int64_t> interior(low.size(), 0);
  return op(Opcode::Pad, {operand, value},
            {{"low", std::move(low)}, {"high", std::move(high)}, {"interior", std::move(interior)}});
}

namespace {

// The region of a reduction by one binary op.
void add_reducer(Instruction* reduce, Opcode reducer, DType dtype) {
  Region& region = reduce->add_region();
  Value lhs = region.add_parameter(Type::tensor(dtype, {}), "lhs")->result();
  Value rhs = region.add_parameter(Type::tensor(dtype, {}), "rhs")->result();
  Instruction* body = region.append(reducer, {lhs, rhs}, {Type::tensor(dtype, {})});
  region.set_results({body->result()});
}

} // namespace

Value GraphBuilder::reduce(Opcode reducer, Value operand, std::vector<int64_t> dims, bool keep_dims) {
  std::vector<Dim> kept, squeezed;
  for (int i = 0; i < operand.rank(); ++i) {
    bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (!reduced) squeezed.push_back(operand.type().dims[static_cast<size_t>(i)]);
    kept.push_back(reduced ? Dim(1) : operand.type().dims[static_cast<size_t>(i)]);
  }
  Value initial = constant(reducer_identity(reducer, operand.dtype()));
  Instruction* made = make_typed(Opcode::Reduce, {operand, initial},
                                 {Type::tensor(operand.dtype(), squeezed)}, {{"dims", std::move(dims)}});
  add_reducer(made, reducer, operand.dtype());
  return keep_dims ? reshape(made->result(), kept) : made->result();
}

Value GraphBuilder::reduce_window(Opcode reducer, Value operand, Window window, Value initial) {
  if (!initial) initial = constant(reducer_identity(reducer, operand.dtype()));
  Instruction* made = make(Opcode::ReduceWindow, {operand, initial}, {{"window", std::move(window)}});
  add_reducer(made, reducer, operand.dtype());
  return made->result();
}

std::optional<Opcode> simple_reducer(const Instruction& reduce) {
  if (reduce.num_regions() != 1) return std::nullopt;
  const Region& region = reduce.region();
  if (region.parameters().size() != 2 || region.results().size() != 1 || region.instructions().size() != 3)
    return std::nullopt;
  const Instruction* body = region.results()[0].def;
  if (body->is(Opcode::Parameter) || op_info(body->opcode()).op_class != OpClass::Binary) return std::nullopt;
  Value lhs = region.parameter(0), rhs = region.parameter(1);
  bool direct = body->operand(0) == lhs && body->operand(1) == rhs;
  bool swapped = body->operand(0) == rhs && body->operand(1) == lhs;
  if (!direct && !(swapped && has_trait(body->opcode(), Commutative))) return std::nullopt;
  return body->opcode();
}

namespace {

// Infinity, or the largest magnitude of a format without it; the smallest value of f8e8m0, which has no sign.
LiteralRef float_extreme(DType dtype, bool negative) {
  auto literal = std::make_shared<Literal>(dtype, std::vector<int64_t>{});
  literal->set_double(0, negative ? -INFINITY : INFINITY);
  if (!std::isnan(literal->get_double(0))) return literal;
  uint8_t largest = double_to_float8(dtype, INFINITY, /*saturate=*/true);
  uint8_t smallest = dtype == DType::F8E8M0 ? 0 : double_to_float8(dtype, -INFINITY, /*saturate=*/true);
  literal->mutable_data<uint8_t>()[0] = negative ? smallest : largest;
  return literal;
}

} // namespace

LiteralRef reducer_identity(Opcode reducer, DType dtype) {
  auto integer = [&](int64_t value) {
    auto literal = std::make_shared<Literal>(dtype, std::vector<int64_t>{});
    literal->set_int(0, value);
    return LiteralRef(literal);
  };
  int bits = bit_width(dtype);
  int64_t smallest = is_signed(dtype) ? (bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1))) : 0;
  int64_t largest = is_signed(dtype)       ? (bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1)
                    : dtype == DType::Bool ? 1
                    : bits == 64           ? -1
                                           : (int64_t(1) << bits) - 1;
  switch (reducer) {
  case Opcode::Add:
  case Opcode::Or:
  case Opcode::Xor: return Literal::scalar(dtype, 0);
  case Opcode::Multiply: return Literal::scalar(dtype, 1);
  case Opcode::And:
    return is_float(dtype) ? Literal::scalar(dtype, 1) : integer(dtype == DType::Bool ? 1 : -1);
  case Opcode::Maximum: return is_float(dtype) ? float_extreme(dtype, /*negative=*/true) : integer(smallest);
  case Opcode::Minimum: return is_float(dtype) ? float_extreme(dtype, /*negative=*/false) : integer(largest);
  default: FIRN_UNREACHABLE("reducer without an identity");
  }
}

std::optional<std::vector<Dim>> broadcast_dims(const std::vector<Dim>& lhs, const std::vector<Dim>& rhs) {
  size_t rank = std::max(lhs.size(), rhs.size());
  std::vector<Dim> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    Dim a = i + lhs.size() < rank ? Dim(1) : lhs[i + lhs.size() - rank];
    Dim b = i + rhs.size() < rank ? Dim(1) : rhs[i + rhs.size() - rank];
    if (a == b || b == Dim(1))
      dims[i] = a;
    else if (a == Dim(1))
      dims[i] = b;
    else
      return std::nullopt;
  }
  return dims;
}

} // namespace firn
