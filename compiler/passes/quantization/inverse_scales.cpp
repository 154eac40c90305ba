// Multiplies sums of products with constants by a factor, in the constants.
#include "compiler/passes/quantization/inverse_scales.h"

#include "compiler/graph/producers.h"
#include "compiler/graph/quantization.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/quantization/value_ranges.h"

#include <cmath>

namespace firn {
namespace {

constexpr int kMaxTerms = 8;

// Whether the constants of a sum of products can be multiplied by a factor and stay within f32.
bool takes_factor(Value sum, double factor, int terms) {
  const Instruction& def = *sum.def;
  const ValueRanges by{std::abs(factor), std::abs(factor)};
  if (is_constant_expression(sum)) {
    auto found = value_ranges(sum);
    return found && (*found * by).are_finite();
  }
  if (def.is(Opcode::Dequantize)) {
    auto found = is_unit_scale(def.operand(1)) ? std::nullopt : value_ranges(def.operand(1));
    return found && (*found * by).are_normal();
  }
  if (def.is(Opcode::Multiply))
    for (int i : {1, 0})
      if (is_constant_expression(def.operand(i))) {
        auto found = value_ranges(def.operand(i));
        return found && (*found * by).are_normal();
      }
  if (!def.is(Opcode::Add) || !has_one_use(sum) || terms > kMaxTerms) return false;
  return takes_factor(def.operand(0), factor, 2 * terms) && takes_factor(def.operand(1), factor, 2 * terms);
}

Value times(GraphBuilder& builder, Value sum, double factor) {
  Instruction& def = *sum.def;
  bool is_constant = is_constant_expression(sum);
  if (is_constant && def.is(Opcode::BroadcastInDim))
    return make_broadcast(builder, times(builder, def.operand(0), factor), sum.type(),
                          def.attributes().ints("dims"));
  if (is_constant) return builder.op(Opcode::Multiply, {sum, builder.splat_like(sum, factor)});
  if (def.is(Opcode::Add))
    return builder.op(Opcode::Add,
                      {times(builder, def.operand(0), factor), times(builder, def.operand(1), factor)});
  if (def.is(Opcode::Dequantize)) {
    std::vector<Value> operands(def.operands().begin(), def.operands().end());
    operands[1] = times(builder, operands[1], factor);
    return builder.op(Opcode::Dequantize, std::move(operands), def.attributes());
  }
  int constant = is_constant_expression(def.operand(1)) ? 1 : 0;
  return builder.op(Opcode::Multiply,
                    {def.operand(1 - constant), times(builder, def.operand(constant), factor)});
}

} // namespace

// y / scale, where y is computed of quantised values, is rounded: an error in the quotient's last bit matters
// only where two steps are equally near.
Value multiply_by_inverse(Instruction& op) {
  // Masked scores contain the lowest number of f32: their scale may be huge.
  constexpr ScaleRange kAnyScale{0x1p-149, 0x1p128};
  auto value = quantized(op, kAnyScale);
  if (!value || value->by.scale == 1 || dequantized(value->y) || !comes_of_integers(value->y)) return {};
  Value y = value->y;
  double inverse = 1 / value->by.scale;
  // Attention divides by the root of its width before.
  if (y.def->is(Opcode::Divide) && has_one_use(y))
    if (auto divisor = splat_value(y.def->operand(1))) {
      inverse /= *divisor;
      y = y.def->operand(0);
    }
  if (!std::isnormal(static_cast<float>(inverse))) return {};
  GraphBuilder builder(*op.parent(), &op);
  Quantized scaled = *value;
  scaled.y = takes_factor(y, inverse, 1) ? times(builder, y, inverse)
                                         : builder.op(Opcode::Multiply, {y, builder.splat_like(y, inverse)});
  scaled.by.scale = 1;
  return quantize_like(builder, scaled.y, scaled);
}

} // namespace firn
