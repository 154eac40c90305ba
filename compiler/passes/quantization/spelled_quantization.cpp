// See spelled_quantization.h.
#include "compiler/passes/quantization/spelled_quantization.h"

#include "compiler/support/whole_number.h"

namespace firn {
namespace {

Value converted(Value value, DType to) {
  return value.def->is(Opcode::Convert) && value.dtype() == to ? value.def->operand(0) : Value{};
}

std::optional<Centered> centered_on(Value value, Value zero_point) {
  if (!value || !value.type().is_tensor()) return std::nullopt;
  if (!has_quantised_integers(value)) return std::nullopt;
  if (auto found = shifted(value)) return Centered{found->integers, zero_point, 0, 0, found->shift};
  return Centered{value, zero_point};
}

} // namespace

std::optional<Centered> centered(Value value) {
  if (!value.type().is_tensor()) return std::nullopt;
  if (value.dtype() == DType::F32) {
    Value integers = converted(value, DType::F32);
    if (!integers) return std::nullopt;
    return integers.dtype() == DType::I32 ? centered(integers) : centered_on(integers, {});
  }
  if (value.dtype() != DType::I32) return std::nullopt;
  if (auto found = centered_on(converted(value, DType::I32), {})) return found;
  if (!value.def->is(Opcode::Subtract)) return std::nullopt;
  Value minuend = value.def->operand(0), subtrahend = value.def->operand(1);
  auto constant = splat_value(subtrahend);
  if (auto found = centered_on(converted(minuend, DType::I32), subtrahend)) return found;
  // Two subtractions are those of a shift and of a zero point, in either order.
  auto inner = minuend.def->is(Opcode::Subtract) ? centered(minuend) : std::nullopt;
  if (!inner || inner->shift != 0) return std::nullopt;
  if (auto shift = splat_value(inner->zero_point))
    return Centered{inner->integers, subtrahend, 0, 0, static_cast<int64_t>(*shift)};
  if (!constant) return std::nullopt;
  return Centered{inner->integers, inner->zero_point, 0, 0, static_cast<int64_t>(*constant)};
}

std::optional<Dequantized> spelled_dequantized(Value value) {
  if (auto plain = centered(value)) return Dequantized{*plain, {}};
  if (!value.type().is_tensor() || value.dtype() != DType::F32 || !value.def->is(Opcode::Multiply))
    return std::nullopt;
  for (int i : {0, 1})
    if (auto plain = centered(value.def->operand(i))) return Dequantized{*plain, value.def->operand(1 - i)};
  return std::nullopt;
}

std::optional<Quantized> spelled_quantized(const Instruction& convert) {
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
  if (!low || !high || !(*low <= *high) || !rounded.def->is(Opcode::RoundNearestEven)) return std::nullopt;
  // The conversion would truncate numbers with a fraction, not round them.
  if (!is_whole(*low) || !is_whole(*high) || !is_whole(zero_point) || std::abs(zero_point) > 65536)
    return std::nullopt;
  return Quantized{rounded.def->operand(0), {1, static_cast<int64_t>(zero_point)}, dtype, *low, *high};
}

} // namespace firn
