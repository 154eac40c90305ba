// Forms of quantised values.
#include "compiler/passes/quantized_values.h"

#include <cmath>

namespace firn {
namespace {

// Beyond these a product with an integer may not be one that division brings back.
constexpr double kLeastScale = 1e-30, kMostScale = 1e30;

bool is_byte(Value value) {
  return value.dtype() == DType::I8 || value.dtype() == DType::U8;
}

Value converted(Value value, DType to) {
  return value.def->is(Opcode::Convert) && value.dtype() == to ? value.def->operand(0) : Value{};
}

bool is_spread_scalar(Value value) {
  return !value || splat_value(value) ||
         (value.def->is(Opcode::BroadcastInDim) && value.def->operand(0).rank() == 0);
}

// The same zero point or scale, of other dims.
Value respread(GraphBuilder& builder, Value parameter, const Type& dims) {
  if (parameter.rank() > 0 && parameter.def->is(Opcode::BroadcastInDim) &&
      parameter.def->operand(0).rank() == 0)
    parameter = parameter.def->operand(0);
  else if (parameter.rank() > 0)
    parameter = builder.scalar(parameter.dtype(), *splat_value(parameter));
  Type type = Type::tensor(parameter.dtype(), dims.dims);
  return dims.rank() == 0 ? parameter : make_broadcast(builder, parameter, type, {});
}

} // namespace

std::optional<Centered> centered(Value value) {
  if (!value.type().is_tensor()) return std::nullopt;
  if (value.dtype() == DType::F32) {
    Value integers = converted(value, DType::F32);
    if (!integers) return std::nullopt;
    if (is_byte(integers)) return Centered{integers, {}};
    return integers.dtype() == DType::I32 ? centered(integers) : std::nullopt;
  }
  if (value.dtype() != DType::I32) return std::nullopt;
  if (Value integers = converted(value, DType::I32); integers && is_byte(integers))
    return Centered{integers, {}};
  if (!value.def->is(Opcode::Subtract)) return std::nullopt;
  Value integers = converted(value.def->operand(0), DType::I32);
  if (!integers || !is_byte(integers)) return std::nullopt;
  return Centered{integers, value.def->operand(1)};
}

std::optional<Dequantized> dequantized(Value value) {
  if (auto plain = centered(value)) return Dequantized{*plain, {}};
  if (!value.type().is_tensor() || value.dtype() != DType::F32 || !value.def->is(Opcode::Multiply))
    return std::nullopt;
  for (int i : {0, 1})
    if (auto plain = centered(value.def->operand(i))) return Dequantized{*plain, value.def->operand(1 - i)};
  return std::nullopt;
}

Value dequantize_like(GraphBuilder& builder, Value integers, const Dequantized& like) {
  Value value = integers;
  if (like.zero_point) {
    value = builder.convert(value, DType::I32);
    value = builder.op(Opcode::Subtract, {value, respread(builder, like.zero_point, integers.type())});
  }
  value = builder.convert(value, DType::F32);
  return like.scale ? builder.op(Opcode::Multiply, {value, respread(builder, like.scale, integers.type())})
                    : value;
}

bool is_per_tensor(const Dequantized& value) {
  return is_spread_scalar(value.zero_point) && is_spread_scalar(value.scale);
}

std::optional<Quantized> quantized(const Instruction& convert) {
  if (!convert.is(Opcode::Convert) || !convert.operand(0).def->is(Opcode::Clamp)) return std::nullopt;
  DType dtype = convert.type().dtype;
  const Instruction& clamp = *convert.operand(0).def;
  if (!is_integer(dtype) || clamp.type().dtype != DType::F32) return std::nullopt;
  auto low = splat_value(clamp.operand(0)), high = splat_value(clamp.operand(2));
  Value rounded = clamp.operand(1);
  double zero_point = 0;
  if (rounded.def->is(Opcode::Add)) {
    auto added = splat_value(rounded.def->operand(1));
    if (!added) return std::nullopt;
    zero_point = *added;
    rounded = rounded.def->operand(0);
  }
  if (!low || !high || !rounded.def->is(Opcode::RoundNearestEven)) return std::nullopt;
  Value quotient = rounded.def->operand(0);
  if (!quotient.def->is(Opcode::Divide)) return std::nullopt;
  auto scale = splat_value(quotient.def->operand(1));
  if (!scale || !(*scale >= kLeastScale && *scale <= kMostScale) || std::abs(zero_point) > 65536)
    return std::nullopt;
  return Quantized{quotient.def->operand(0), {*scale, static_cast<int64_t>(zero_point)}, dtype, *low, *high};
}

Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like) {
  Value rounded = builder.unary(Opcode::RoundNearestEven,
                                builder.op(Opcode::Divide, {y, builder.splat_like(y, like.by.scale)}));
  if (like.by.zero_point != 0)
    rounded = builder.op(Opcode::Add,
                         {rounded, builder.splat_like(rounded, static_cast<double>(like.by.zero_point))});
  Value clamped = builder.op(Opcode::Clamp, {builder.splat_like(rounded, like.low), rounded,
                                             builder.splat_like(rounded, like.high)});
  return builder.convert(clamped, like.dtype);
}

std::optional<Quantization> quantization_of(const Dequantized& value) {
  Quantization found;
  if (value.scale) {
    auto scale = splat_value(value.scale);
    if (!scale || !(*scale >= kLeastScale && *scale <= kMostScale)) return std::nullopt;
    found.scale = *scale;
  }
  if (value.zero_point) {
    auto zero_point = splat_value(value.zero_point);
    if (!zero_point) return std::nullopt;
    found.zero_point = static_cast<int64_t>(*zero_point);
  }
  return found;
}

} // namespace firn
