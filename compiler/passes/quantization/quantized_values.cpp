// See quantized_values.h.
#include "compiler/passes/quantization/quantized_values.h"

#include "compiler/graph/derivation.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/producers.h"
#include "compiler/graph/quantization.h"
#include "compiler/plan/byte_values.h"

#include <algorithm>
#include <cmath>

namespace firn {
namespace {

// Constants of fewer bits than a byte.
bool are_short_weights(Value value) {
  DType dtype = value.dtype();
  return constant_literal(value) && is_integer(dtype) && bit_width(dtype) < 8;
}

// Finds the zero points of the elements of a quantised constant.
class ZeroPlaces {
public:
  explicit ZeroPlaces(const Centered& value) {
    const std::vector<int64_t> dims = value.integers.type().static_dims();
    const std::vector<int64_t> own = value.zero_point ? value.zero_point.type().static_dims() : dims;
    int64_t stride = 1;
    auto add = [&](size_t d, int64_t extent) {
      const bool is_blocked = value.block > 0 && static_cast<int64_t>(d) == value.axis;
      dims_.push_back({dims[d], is_blocked ? value.block : 1, extent == 1 ? 0 : stride});
      stride *= extent;
    };
    const bool runs_along_axis = own.size() == 1 && value.block == 0;
    for (size_t d = dims.size(); d-- > 0;)
      add(d, own.empty() ? 1 : !runs_along_axis ? own[d] : d == static_cast<size_t>(value.axis) ? own[0] : 1);
  }
  int64_t of(int64_t element) const {
    int64_t at = 0;
    for (const Dim& dim : dims_) {
      at += element % dim.extent / dim.block * dim.stride;
      element /= dim.extent;
    }
    return at;
  }

private:
  struct Dim {
    int64_t extent, block, stride;
  };
  std::vector<Dim> dims_; // innermost first
};

bool is_plain_i8(const Centered& value) {
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
LiteralRef known_zeros(const Centered& value) {
  return value.zero_point ? known_numbers(value.zero_point) : nullptr;
}

// The integers less their zero point; null if they are no constants, or if bytes do not hold the differences.
std::shared_ptr<Literal> in_signed_bytes(const Centered& value) {
  if (!constant_literal(value.integers) || value.shift != 0) return nullptr;
  LiteralRef zeros = known_zeros(value);
  if (value.zero_point && !zeros) return nullptr;
  const LiteralRef& own = value.integers.def->literal();
  if (!own->values_may_be_used() && !have_room_for_all(own->dtype(), zeros.get())) return nullptr;
  const LiteralRef integers = Literal::plain(own);
  auto made = std::make_shared<Literal>(DType::I8, integers->dims());
  std::span<int8_t> bytes = made->mutable_data<int8_t>();
  const ZeroPlaces places(value);
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t centered = integers->get_int(at) - (zeros ? zeros->get_int(places.of(at)) : 0);
    if (centered < INT8_MIN || centered > INT8_MAX) return nullptr;
    bytes[i] = static_cast<int8_t>(centered);
  }
  return made;
}

Attributes places_of(const Centered& value) {
  Attributes attributes{{"axis", value.axis}};
  if (value.block > 0) attributes.set("block", value.block);
  return attributes;
}

Value spread_zeros(GraphBuilder& builder, const LiteralRef& zeros, const Centered& value, const Type& x) {
  return spread_parameter(builder, builder.constant(zeros), x, places_of(value), DType::I32);
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

Value signed_bytes(GraphBuilder& builder, const Centered& value) {
  std::shared_ptr<Literal> made = is_plain_i8(value) ? nullptr : in_signed_bytes(value);
  if (!made) return {};
  builder.set_location(value.integers.def->location());
  return builder.constant(derived_from(*value.integers.def, made, [&](GraphBuilder& b, Value source) {
    Value wide = b.convert(source, DType::I32);
    if (LiteralRef zeros = known_zeros(value))
      wide = b.op(Opcode::Subtract, {wide, spread_zeros(b, zeros, value, source.type())});
    return b.convert(wide, DType::I8);
  }));
}

Value as_signed_bytes(GraphBuilder& builder, const Centered& value) {
  bool are_such = constant_literal(value.integers) && is_plain_i8(value);
  return are_such ? value.integers : signed_bytes(builder, value);
}

bool are_signed_bytes(const Centered& value) {
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

Value unshifted(GraphBuilder& builder, Value zero_point, const Shifted& by) {
  const DType to = by.integers.dtype();
  const double shift = static_cast<double>(by.shift);
  if (!zero_point) return shift == 0 ? Value{} : builder.scalar(to, shift);
  if (auto known = zero_point.rank() == 0 ? splat_value(zero_point) : std::nullopt)
    return builder.scalar(to, *known + shift);
  return with_other_sign(builder, builder.convert(zero_point, to));
}

bool has_quantised_integers(Value value) {
  return is_quantised(value.dtype()) || are_short_weights(value);
}

std::optional<Dequantized> dequantized(Value value) {
  const Instruction& op = *value.def;
  if (!op.is(Opcode::Dequantize) || value.dtype() != DType::F32 || !has_quantised_integers(op.operand(0)))
    return std::nullopt;
  Dequantized found;
  found.integers = op.operand(0);
  if (!is_unit_scale(op.operand(1))) found.scale = op.operand(1);
  if (op.num_operands() == 3) found.zero_point = op.operand(2);
  found.axis = op.attributes().integer("axis", 0);
  found.block = op.attributes().integer("block", 0);
  return found;
}

Value dequantize_like(GraphBuilder& builder, Value integers, const Dequantized& like) {
  std::vector<Value> operands{integers, like.scale ? like.scale : builder.scalar(DType::F32, 1)};
  if (like.zero_point) operands.push_back(like.zero_point);
  return builder.op(Opcode::Dequantize, std::move(operands),
                    is_per_tensor(like) ? Attributes{} : places_of(like));
}

bool is_per_tensor(const Dequantized& value) {
  return (!value.zero_point || value.zero_point.rank() == 0) && (!value.scale || value.scale.rank() == 0);
}

std::optional<ChannelValue> channel_parameter(GraphBuilder& builder, const Centered& of, Value parameter) {
  if (parameter.rank() == 0) return ChannelValue{parameter, -1};
  if (parameter.def->is(Opcode::BroadcastInDim) && parameter.type().dims == of.integers.type().dims)
    return channel_value(parameter, builder);
  if (auto splat = splat_value(parameter)) return ChannelValue{builder.scalar(parameter.dtype(), *splat), -1};
  if (parameter.rank() == 1 && of.block == 0) return ChannelValue{parameter, of.axis};
  return of.block == 0 ? channel_value(parameter, builder) : std::nullopt;
}

const Instruction* bounded_quantize(const Instruction& clamp) {
  if (!clamp.is(Opcode::Clamp) || !is_integer(clamp.type().dtype)) return nullptr;
  const Value integers = clamp.operand(1);
  auto low = splat_value(clamp.operand(0)), high = splat_value(clamp.operand(2));
  const bool is_wanted =
      integers.def->is(Opcode::Quantize) && has_one_use(integers) && low && high && *low <= *high;
  return is_wanted ? integers.def : nullptr;
}

bool is_bounded_behind(const Instruction& quantize) {
  return quantize.users().size() == 1 && bounded_quantize(*quantize.users().front()) == &quantize;
}

std::optional<Quantized> quantized(const Instruction& instruction, ScaleRange scales) {
  const Instruction* clamped = bounded_quantize(instruction);
  const Instruction& op = clamped ? *clamped : instruction;
  if (!op.is(Opcode::Quantize) || (!clamped && is_bounded_behind(op))) return std::nullopt;
  const DType dtype = op.type().dtype;
  if (op.operand(0).dtype() != DType::F32 || !is_integer(dtype)) return std::nullopt;
  auto scale = splat_value(op.operand(1)),
       zero_point = op.num_operands() == 3 ? splat_value(op.operand(2)) : std::optional(0.0);
  if (!scale || !scales.has(*scale) || !zero_point) return std::nullopt;
  const NumberRange own = range_of(dtype);
  Quantized found{op.operand(0), {*scale, static_cast<int64_t>(*zero_point)}, dtype, own.min, own.max};
  if (!clamped) return found;
  found.low = std::max(found.low, *splat_value(instruction.operand(0)));
  found.high = std::min(found.high, *splat_value(instruction.operand(2)));
  return found;
}

Value quantize_like(GraphBuilder& builder, Value y, const Quantized& like) {
  std::vector<Value> operands{y, builder.scalar(DType::F32, like.by.scale)};
  if (like.by.zero_point != 0)
    operands.push_back(builder.scalar(like.dtype, static_cast<double>(like.by.zero_point)));
  return bounded_integers(builder, builder.op(Opcode::Quantize, std::move(operands), {{"to", like.dtype}}),
                          like.low, like.high);
}

std::optional<Quantized> narrowed(const Instruction& instruction) {
  if (!instruction.is(Opcode::Narrow)) return std::nullopt;
  const Attributes& attributes = instruction.attributes();
  return Quantized{instruction.operand(0),
                   {1, attributes.integer("zero", 0)},
                   instruction.type().dtype,
                   static_cast<double>(attributes.integer("low")),
                   static_cast<double>(attributes.integer("high"))};
}

Value bounded_integers(GraphBuilder& builder, Value integers, double low, double high) {
  const NumberRange all = range_of(integers.dtype());
  if (low <= all.min && high >= all.max) return integers;
  return builder.op(Opcode::Clamp,
                    {builder.splat_like(integers, low), integers, builder.splat_like(integers, high)});
}

double quantized_number(const Quantized& like, double y) {
  float quotient = static_cast<float>(y) / static_cast<float>(like.by.scale);
  float rounded = std::nearbyint(quotient) + static_cast<float>(like.by.zero_point);
  return std::clamp(static_cast<double>(rounded), like.low, like.high);
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
    const bool widens = def.is(Opcode::Convert) || def.is(Opcode::Dequantize);
    if (widens && is_integer(def.operand(0).dtype())) return Walk::Stop;
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
