// See quantization.h.
#include "compiler/graph/quantization.h"

#include <algorithm>
#include <optional>

namespace firn {
namespace {

Value spread(GraphBuilder& b, Value parameter, const std::vector<Dim>& dims, std::vector<int64_t> at) {
  if (parameter.type().dims == dims) return parameter;
  return b
      .make_typed(Opcode::BroadcastInDim, {parameter}, {Type::tensor(parameter.dtype(), dims)},
                  {{"dims", std::move(at)}})
      ->result();
}

// The parameter in another dtype; a known number needs no conversion.
Value converted(GraphBuilder& b, Value parameter, DType dtype) {
  const Instruction& def = *parameter.def;
  const bool is_number = def.is(Opcode::Constant) && parameter.rank() == 0 && !def.literal()->is_opaque() &&
                         def.literal()->values_may_be_used();
  return is_number && parameter.dtype() != dtype ? b.scalar(dtype, def.literal()->get_double(0))
                                                 : b.convert(parameter, dtype);
}

// A parameter of the rank of x without its dims of one element; `kept` are those that it has. A reshape that
// gave it that rank is undone.
Value without_unit_dims(GraphBuilder& b, Value parameter, std::vector<int64_t>& kept) {
  std::vector<Dim> dims;
  for (int64_t d = 0; d < parameter.rank(); ++d) {
    const Dim& dim = parameter.type().dims[static_cast<size_t>(d)];
    if (dim == Dim(1)) continue;
    kept.push_back(d);
    dims.push_back(dim);
  }
  const Instruction& def = *parameter.def;
  if (def.is(Opcode::Reshape) && def.operand(0).type().dims == dims) return def.operand(0);
  return b.reshape(parameter, std::move(dims));
}

// The parameter of each block for all its indices along the axis; the last block may be cut.
Value spread_blocks(GraphBuilder& b, Value parameter, const std::vector<Dim>& dims, size_t axis,
                    int64_t block, DType dtype) {
  const int64_t blocks = parameter.type().dims[axis].value(), extent = dims[axis].value();
  block = std::min(block, extent); // a model may ask for blocks beyond what types hold
  std::vector<Dim> apart = dims, joined = dims;
  apart[axis] = Dim(blocks);
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(block));
  joined[axis] = Dim(blocks * block);
  std::vector<int64_t> kept;
  parameter = without_unit_dims(b, parameter, kept);
  for (int64_t& d : kept)
    if (d > static_cast<int64_t>(axis)) ++d;
  Value whole = b.reshape(spread(b, b.convert(parameter, dtype), apart, std::move(kept)), joined);
  if (blocks * block == extent) return whole;
  std::vector<int64_t> starts(dims.size(), 0), limits(dims.size(), -1), strides(dims.size(), 1);
  limits[axis] = extent;
  return b.slice(whole, starts, limits, strides);
}

class Body {
public:
  Body(GraphBuilder& builder, const Instruction& op) : b_(builder), op_(op), x_(op.operand(0)) {}

  Value quantize(std::optional<IntegerBounds> bounds = std::nullopt) {
    const DType to = op_.type().dtype;
    Value y = divided();
    const DType wide = y.dtype();
    if (is_integer(to)) y = b_.unary(Opcode::RoundNearestEven, y);
    if (has_zero_point()) y = b_.op(Opcode::Add, {y, parameter(2, wide)});
    if (is_integer(to)) return b_.convert(bounded(y, bounds.value_or(integer_bounds(to))), to);
    Attributes attributes{{"to", to}};
    if (op_.attributes().flag("saturate")) attributes.set("saturate", true);
    return b_.op(Opcode::Convert, {y}, attributes);
  }

  Value divided() {
    Value y = x_;
    if (!is_unit_scale(op_.operand(1))) y = b_.op(Opcode::Divide, {x_, parameter(1, x_.dtype())});
    return b_.convert(y, x_.dtype() == DType::F64 ? DType::F64 : DType::F32);
  }

  Value dequantize() {
    const DType wide = is_float(x_.dtype()) ? DType::F32 : DType::I32;
    const Value scale = op_.operand(1);
    Value difference = x_;
    if (has_zero_point())
      difference = b_.op(Opcode::Subtract, {b_.convert(x_, wide), parameter(2, wide)});
    else if (bit_width(x_.dtype()) > 16)
      difference = b_.convert(x_, wide);
    difference = b_.convert(difference, scale.dtype());
    if (is_unit_scale(scale)) return difference;
    return b_.op(Opcode::Multiply, {difference, parameter(1, scale.dtype())});
  }

private:
  bool has_zero_point() const { return op_.num_operands() == 3; }

  Value parameter(int operand, DType dtype) {
    return spread_parameter(b_, op_.operand(operand), x_.type(), op_.attributes(), dtype);
  }

  Value bounded(Value y, IntegerBounds bounds) {
    return b_.op(Opcode::Clamp, {b_.splat_like(y, static_cast<double>(bounds.low)), y,
                                 b_.splat_like(y, static_cast<double>(bounds.high))});
  }

  GraphBuilder& b_;
  const Instruction& op_;
  Value x_;
};

} // namespace

IntegerBounds integer_bounds(DType dtype) {
  const int64_t count = int64_t{1} << bit_width(dtype), low = is_signed(dtype) ? -count / 2 : 0;
  return {low, low + count - 1};
}

bool is_unit_scale(Value scale) {
  if (!scale.def->is(Opcode::Constant) || scale.rank() != 0) return false;
  const Literal& literal = *scale.def->literal();
  return !literal.is_opaque() && literal.values_may_be_used() && literal.get_double(0) == 1;
}

Value spread_parameter(GraphBuilder& builder, Value parameter, const Type& x, const Attributes& attributes,
                       DType dtype) {
  const int64_t axis = attributes.integer("axis", 0), block = attributes.integer("block", 0);
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> kept;
  if (parameter.rank() == 1 && block == 0)
    kept.push_back(axis);
  else if (parameter.rank() > 0 && block > 0 && parameter.type().dims[at] != Dim(1))
    return spread_blocks(builder, parameter, x.dims, at, block, dtype);
  else if (parameter.rank() > 0)
    parameter = without_unit_dims(builder, parameter, kept);
  return spread(builder, converted(builder, parameter, dtype), x.dims, std::move(kept));
}

Value quantization_body(GraphBuilder& builder, const Instruction& quantization) {
  Body body(builder, quantization);
  return quantization.is(Opcode::Quantize) ? body.quantize() : body.dequantize();
}

Value divided_by_scale(GraphBuilder& builder, const Instruction& quantize) {
  return Body(builder, quantize).divided();
}

Value bounded_quantize_body(GraphBuilder& builder, const Instruction& quantize, IntegerBounds bounds) {
  return Body(builder, quantize).quantize(bounds);
}

} // namespace firn
