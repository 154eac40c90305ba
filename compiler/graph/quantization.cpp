// See quantization.h.
#include "compiler/graph/quantization.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

class Body {
public:
  Body(GraphBuilder& builder, const Instruction& op) : b_(builder), op_(op), x_(op.operand(0)) {}

  Value quantize() {
    const DType to = op_.type().dtype, wide = x_.dtype() == DType::F64 ? DType::F64 : DType::F32;
    Value y = has_unit_scale() ? x_ : b_.op(Opcode::Divide, {x_, spread(op_.operand(1), x_.dtype())});
    y = b_.convert(y, wide);
    if (is_integer(to)) y = b_.unary(Opcode::RoundNearestEven, y);
    if (has_zero_point()) y = b_.op(Opcode::Add, {y, spread(op_.operand(2), wide)});
    if (is_integer(to)) return b_.convert(bounded(y, to), to);
    Attributes attributes{{"to", to}};
    if (op_.attributes().flag("saturate")) attributes.set("saturate", true);
    return b_.op(Opcode::Convert, {y}, attributes);
  }

  Value dequantize() {
    const DType wide = is_float(x_.dtype()) ? DType::F32 : DType::I32;
    Value scale = op_.operand(1), difference = b_.convert(x_, wide);
    if (has_zero_point()) difference = b_.op(Opcode::Subtract, {difference, spread(op_.operand(2), wide)});
    return b_.op(Opcode::Multiply, {b_.convert(difference, scale.dtype()), spread(scale, scale.dtype())});
  }

private:
  bool has_zero_point() const { return op_.num_operands() == 3; }

  // Whether the division changes nothing, whatever the weights of the model become.
  bool has_unit_scale() const {
    const Instruction& scale = *op_.operand(1).def;
    if (!scale.is(Opcode::Constant) || scale.type().rank() != 0) return false;
    const Literal& literal = *scale.literal();
    return !literal.is_opaque() && literal.values_may_be_used() && literal.get_double(0) == 1;
  }

  Value bounded(Value y, DType to) {
    const int bits = bit_width(to);
    const double low = is_signed(to) ? -std::ldexp(1.0, bits - 1) : 0, high = low + std::ldexp(1.0, bits) - 1;
    return b_.op(Opcode::Clamp, {b_.splat_like(y, low), y, b_.splat_like(y, high)});
  }

  // A scale or zero point for each element of x, in another dtype. It is converted behind reshapes:
  // passes look for the constant beneath the conversion.
  Value spread(Value parameter, DType dtype) {
    const std::vector<Dim>& dims = x_.type().dims;
    const int64_t axis = op_.attributes().integer("axis", 0), block = op_.attributes().integer("block", 0);
    if (parameter.rank() == 1 && block == 0) {
      std::vector<Dim> aligned(dims.size() - static_cast<size_t>(axis), Dim(1));
      aligned[0] = dims[static_cast<size_t>(axis)];
      parameter = b_.reshape(parameter, std::move(aligned));
    } else if (parameter.rank() > 0 && block > 0)
      parameter = b_.broadcast_to(repeated(parameter, static_cast<size_t>(axis), block), dims);
    return b_.broadcast_to(b_.convert(parameter, dtype), dims);
  }

  // The parameter of each block for all its indices along the axis; the last block may be cut.
  Value repeated(Value parameter, size_t axis, int64_t block) {
    std::vector<Dim> joined = parameter.type().dims, apart = joined;
    if (joined[axis] == Dim(1)) return parameter;
    const int64_t blocks = joined[axis].value(), extent = x_.type().dims[axis].value();
    block = std::min(block, extent); // a model may ask for blocks beyond what types hold
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(1));
    parameter = b_.reshape(parameter, apart);
    apart[axis + 1] = Dim(block);
    joined[axis] = Dim(blocks * block);
    parameter = b_.reshape(b_.broadcast_to(parameter, apart), joined);
    if (blocks * block == extent) return parameter;
    std::vector<int64_t> starts(joined.size(), 0), limits(joined.size(), -1), strides(joined.size(), 1);
    limits[axis] = extent;
    return b_.slice(parameter, starts, limits, strides);
  }

  GraphBuilder& b_;
  const Instruction& op_;
  Value x_;
};

} // namespace

Value quantization_body(GraphBuilder& builder, const Instruction& quantization) {
  Body body(builder, quantization);
  return quantization.is(Opcode::Quantize) ? body.quantize() : body.dequantize();
}

} // namespace firn
