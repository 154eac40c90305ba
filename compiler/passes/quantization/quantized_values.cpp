// Forms of quantised values.
#include "compiler/passes/quantization/quantized_values.h"

#include "compiler/graph/derivation.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/producers.h"
#include "compiler/plan/byte_values.h"
#include "compiler/support/whole_number.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

Value converted(Value value, DType to) {
  return value.def->is(Opcode::Convert) && value.dtype() == to ? value.def->operand(0) : Value{};
}

bool is_spread_scalar(Value value) {
  return !value || splat_value(value) ||
         (value.def->is(Opcode::BroadcastInDim) && value.def->operand(0).rank() == 0);
}

// A zero point or scale of the whole tensor, spread over other dims.
Value respread(GraphBuilder& builder, Value parameter, const Type& dims) {
  if (parameter.rank() > 0 && parameter.def->is(Opcode::BroadcastInDim) &&
      parameter.def->operand(0).rank() == 0)
    parameter = parameter.def->operand(0);
  else if (parameter.rank() > 0)
    parameter = builder.scalar(parameter.dtype(), *splat_value(parameter));
  Type type = Type::tensor(parameter.dtype(), dims.dims);
  return dims.rank() == 0 ? parameter : make_broadcast(builder, parameter, type, {});
}

// The zero point plus the shift, for integers of other dims; null: zero.
Value shifted_zero_point(GraphBuilder& builder, const Dequantized& like, const Type& dims) {
  Type type = Type::tensor(DType::I32, dims.dims);
  double shift = static_cast<double>(like.shift);
  if (!like.zero_point) return like.shift == 0 ? Value{} : make_splat(builder, type, shift);
  if (auto splat = splat_value(like.zero_point)) return make_splat(builder, type, *splat + shift);
  Value zero_point = respread(builder, like.zero_point, dims);
  return like.shift == 0 ? zero_point
                         : builder.op(Opcode::Add, {zero_point, make_splat(builder, type, shift)});
}

// Constants of fewer bits than a byte.
bool are_short_weights(Value value) {
  DType dtype = value.dtype();
  return constant_literal(value) && is_integer(dtype) && bit_width(dtype) < 8;
}

std::optional<Centered> centered_on(Value value, Value zero_point) {
  if (!value || !value.type().is_tensor()) return std::nullopt;
  if (!is_quantised(value.dtype()) && !are_short_weights(value)) return std::nullopt;
  if (auto found = shifted(value)) return Centered{found->integers, zero_point, found->shift};
  return Centered{value, zero_point, 0};
}

bool is_plain_i8(const Dequantized& value) {
  return value.integers.dtype() == DType::I8 && !value.zero_point && value.shift == 0;
}

// Whether signed bytes hold every number of that type less each zero point.
bool have_room_for_all(DType integers, const Literal* zeros) {
  const NumberRange range = range_of(integers);
  const int64_t count = zeros ? zeros->num_elements() : 1;
  for (int64_t i = 0; i < count; ++i) {
    const double zero = zeros ? zeros->get_double(i) : 0;
    if (range.min - zero < INT8_MIN || range.max - zero > INT8_MAX) return false;
  }
  return true;
}

// The numbers of zero points that are constants; null: there is none.
LiteralRef known_zeros(const Dequantized& value) {
  return value.zero_point ? known_numbers(value.zero_point) : nullptr;
}

// The integers less their zero point; null if they are no constants, or if bytes do not hold the differences.
std::shared_ptr<Literal> in_signed_bytes(const Dequantized& value) {
  if (!constant_literal(value.integers) || value.shift != 0) return nullptr;
  LiteralRef zeros = known_zeros(value);
  if (value.zero_point && !zeros) return nullptr;
  const LiteralRef& own = value.integers.def->literal();
  if (!own->values_may_be_used() && !have_room_for_all(own->dtype(), zeros.get())) return nullptr;
  const LiteralRef integers = Literal::plain(own);
  auto made = std::make_shared<Literal>(DType::I8, integers->dims());
  std::span<int8_t> bytes = made->mutable_data<int8_t>();
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t centered = integers->get_int(at) - (zeros ? zeros->get_int(at) : 0);
    if (centered < INT8_MIN || centered > INT8_MAX) return nullptr;
    bytes[i] = static_cast<int8_t>(centered);
  }
  return made;
}

// Flips the top bit.
Value with_other_sign(GraphBuilder& builder, Value integers) {
  double top = integers.dtype() == DType::I16 ? -32768 : 128;
  return builder.op(Opcode::Xor, {integers, builder.splat_like(integers, top)});
}

} // namespace

LiteralRef known_numbers(Value value) {
  const Instruction& def = *value.def;
  if (constant_literal(value)) return def.literal();
  if (!def.is(Opcode::Convert) && !has_trait(def.opcode(), Strided)) return nullptr;
  LiteralRef source = value.type().is_static() ? known_numbers(def.operand(0)) : nullptr;
  auto made = source ? evaluate_instruction(def, {source}) : std::nullopt;
  return made ? (*made)[0] : nullptr;
}

Value signed_bytes(GraphBuilder& builder, const Dequantized& value) {
  std::shared_ptr<Literal> made = is_plain_i8(value) ? nullptr : in_signed_bytes(value);
  if (!made) return {};
  builder.set_location(value.integers.def->location());
  return builder.constant(derived_from(*value.integers.def, made, [&](GraphBuilder& b, Value source) {
    Value wide = b.convert(source, DType::I32);
    if (LiteralRef zeros = known_zeros(value))
      wide = b.op(Opcode::Subtract, {wide, b.convert(b.constant(zeros), DType::I32)});
    return b.convert(wide, DType::I8);
  }));
}

Value as_signed_bytes(GraphBuilder& builder, const Dequantized& value) {
  bool are_such = constant_literal(value.integers) && is_plain_i8(value);
  return are_such ? value.integers : signed_bytes(builder, value);
}

bool are_signed_bytes(const Dequantized& value) {
  return is_plain_i8(value) || in_signed_bytes(value);
}

NumberRange range_of(DType integers) {
  const double count = std::exp2(bit_width(integers));
  return is_signed(integers) ? NumberRange{-count / 2, count / 2 - 1} : NumberRange{0, count - 1};
}

NumberRange range_of(Value zero_point) {
  const Instruction& def = *zero_point.def;
  if (const Literal* literal = constant_literal(zero_point)) {
    NumberRange found{INFINITY, -INFINITY};
    for (int64_t i = 0; i < literal->num_elements(); ++i) {
      found.min = std::min(found.min, literal->get_double(i));
      found.max = std::max(found.max, literal->get_double(i));
    }
    return found;
  }
  bool is_widened = def.is(Opcode::Convert) && is_integer(def.operand(0).dtype()) &&
                    bit_width(def.operand(0).dtype()) <= 16;
  if (is_widened || has_trait(def.opcode(), Strided)) return range_of(def.operand(0));
  bool is_narrow = is_integer(zero_point.dtype()) && bit_width(zero_point.dtype()) <= 16;
  return is_narrow ? range_of(zero_point.dtype()) : NumberRange{-INFINITY, INFINITY};
}

double max_centered(const Centered& value) {
  const NumberRange own = range_of(value.integers.dtype());
  const NumberRange zeros = value.zero_point ? range_of(value.zero_point) : NumberRange{0, 0};
  const auto shift = static_cast<double>(value.shift);
  return std::max(own.max - (zeros.min + shift), zeros.max + shift - own.min);
}

bool is_quantised(DType dtype) {
  return is_integer(dtype) && (bit_width(dtype) == 8 || bit_width(dtype) == 16);
}

std::optional<Shifted> shifted(Value value) {
  if (!value.def->is(Opcode::Convert)) return std::nullopt;
  Value from = value.def->operand(0);
  bool are_bytes = value.dtype() == DType::I8 && from.dtype() == DType::U8,
       are_wide = value.dtype() == DType::U16 && from.dtype() == DType::I16;
  if (!are_bytes && !are_wide) return std::nullopt;
  if (from.def->is(Opcode::Xor) && is_splat_of(from.def->operand(1), are_bytes ? 128 : -32768))
    return Shifted{from.def->operand(0), are_bytes ? 128 : -32768};
  constexpr plan::ByteBounds kBoth{0, 127};
  return are_bytes && plan::lies_within(from, kBoth) ? std::optional(Shifted{from, 0}) : std::nullopt;
}

Value shift_like(GraphBuilder& builder, Value integers, const Shifted& like) {
  DType to = integers.dtype() == DType::I16 ? DType::U16 : DType::I8;
  return builder.convert(like.shift != 0 ? with_other_sign(builder, integers) : integers, to);
}

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
    return Centered{inner->integers, subtrahend, static_cast<int64_t>(*shift)};
  if (!constant) return std::nullopt;
  return Centered{inner->integers, inner->zero_point, static_cast<int64_t>(*constant)};
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
  if (Value zero_point = shifted_zero_point(builder, like, integers.type()))
    value = builder.op(Opcode::Subtract, {builder.convert(value, DType::I32), zero_point});
  value = builder.convert(value, DType::F32);
  return like.scale ? builder.op(Opcode::Multiply, {value, respread(builder, like.scale, integers.type())})
                    : value;
}

bool is_per_tensor(const Dequantized& value) {
  return is_spread_scalar(value.zero_point) && is_spread_scalar(value.scale);
}

std::optional<Quantized> quantized_scaled(const Instruction& convert) {
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

std::optional<Quantized> quantized(const Instruction& convert, ScaleRange scales) {
  auto found = quantized_scaled(convert);
  if (!found || !found->y.def->is(Opcode::Divide)) return std::nullopt;
  const Instruction& quotient = *found->y.def;
  auto scale = splat_value(quotient.operand(1));
  if (!scale || !scales.has(*scale)) return std::nullopt;
  found->y = quotient.operand(0);
  found->by.scale = *scale;
  return found;
}

Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like) {
  Quantized scaled = like;
  scaled.y = builder.op(Opcode::Divide, {y, builder.splat_like(y, like.by.scale)});
  return quantize_scaled(builder, scaled);
}

double quantized_number(const Quantized& like, double y) {
  float quotient = static_cast<float>(y) / static_cast<float>(like.by.scale);
  float rounded = std::nearbyint(quotient) + static_cast<float>(like.by.zero_point);
  return std::clamp(static_cast<double>(rounded), like.low, like.high);
}

Value quantize_scaled(GraphBuilder& builder, const Quantized& scaled) {
  Value rounded = builder.unary(Opcode::RoundNearestEven, scaled.y);
  if (scaled.by.zero_point != 0)
    rounded = builder.op(Opcode::Add,
                         {rounded, builder.splat_like(rounded, static_cast<double>(scaled.by.zero_point))});
  Value clamped = builder.op(Opcode::Clamp, {builder.splat_like(rounded, scaled.low), rounded,
                                             builder.splat_like(rounded, scaled.high)});
  return builder.convert(clamped, scaled.dtype);
}

Bounded bounded(Value value) {
  const Instruction& def = *value.def;
  auto number = [&](int i) {
    auto splat = splat_value(def.operand(i));
    return splat && !std::isnan(*splat) ? splat : std::nullopt;
  };
  if (def.is(Opcode::Clamp)) {
    auto low = number(0), high = number(2);
    if (low && high && *low <= *high) return {def.operand(1), *low, *high};
  }
  for (int i : {0, 1}) {
    if (!def.is(Opcode::Maximum) && !def.is(Opcode::Minimum)) break;
    auto bound = number(1 - i);
    if (bound && def.is(Opcode::Maximum)) return {def.operand(i), *bound, INFINITY};
    if (bound) return {def.operand(i), -INFINITY, *bound};
  }
  return {value};
}

bool comes_of_integers(Value value) {
  constexpr int kLongestChain = 12;
  return !walk_producers(value, [](Value part, int depth) {
    const Instruction& def = *part.def;
    if (def.is(Opcode::Convert) && is_integer(def.operand(0).dtype())) return Walk::Stop;
    return depth < kLongestChain ? Walk::Into : Walk::Past;
  });
}

std::optional<Quantization> quantization_of(const Dequantized& value) {
  Quantization found;
  if (value.scale) {
    auto scale = splat_value(value.scale);
    if (!scale || !ScaleRange().has(*scale)) return std::nullopt;
    found.scale = *scale;
  }
  if (value.zero_point) {
    auto zero_point = splat_value(value.zero_point);
    if (!zero_point) return std::nullopt;
    found.zero_point = static_cast<int64_t>(*zero_point);
  }
  found.zero_point += value.shift;
  return found;
}

} // namespace firn
