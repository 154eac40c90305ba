// Recognises expressions of several elementwise ops, and emits their code.
#include "compiler/lower/element/element_forms.h"

#include "compiler/graph/magnitude_bound.h"
#include "compiler/graph/scalar_ops.h"
#include "compiler/plan/elements/element_code.h"
#include "compiler/support/whole_number.h"

#include <cmath>

namespace firn::lower {

std::optional<double> number_of(Value value) {
  while (value.def->is(Opcode::BroadcastInDim) || value.def->is(Opcode::Reshape))
    value = value.def->operand(0);
  if (!value.def->is(Opcode::Constant)) return std::nullopt;
  const Literal& literal = *value.def->literal();
  if (literal.is_opaque() || literal.num_elements() == 0 || !plan::is_immediate(literal)) return std::nullopt;
  return literal.get_double(0);
}

Value erf_beside_one(const Instruction& add) {
  if (!add.is(Opcode::Add) || add.type().dtype != DType::F32) return {};
  for (int i : {0, 1})
    if (add.operand(i).def->is(Opcode::Erf) && number_of(add.operand(1 - i)) == 1) return add.operand(i);
  return {};
}

std::pair<Value, double> scaled_value(Value product) {
  if (product.def->is(Opcode::Multiply))
    for (int i : {0, 1}) {
      auto number = number_of(product.def->operand(i));
      if (number && *number > 0x1p-10 && *number < 0x1p10) return {product.def->operand(1 - i), *number};
    }
  return {};
}

namespace {

// Whether f32 and i32 represent the number, and the sum of two such numbers.
bool is_small_whole(std::optional<double> number) {
  return number && std::abs(*number) <= 0x1p23 && is_whole(*number);
}

// Whether a convert's type represents all numbers between the bounds.
bool holds_bounds(const Instruction& convert, const QuantisedForm& form) {
  DType to = convert.type().dtype;
  int bits = bit_width(to);
  double min = is_signed(to) ? -std::ldexp(1, bits - 1) : 0, max = std::ldexp(1, bits) - 1 + min;
  return form.low >= min && form.high <= max;
}

} // namespace

std::optional<QuantisedForm> quantised_form(const Instruction& convert,
                                            const std::function<bool(Value)>& is_leaf) {
  DType to = convert.type().dtype;
  if (!convert.is(Opcode::Convert) || !is_integer(to) || bit_width(to) < 8 || bit_width(to) > 32) return {};
  const Instruction& clamp = *convert.operand(0).def;
  if (!clamp.is(Opcode::Clamp) || clamp.type().dtype != DType::F32 || is_leaf(convert.operand(0))) return {};
  auto low = number_of(clamp.operand(0)), high = number_of(clamp.operand(2));
  if (!is_small_whole(low) || !is_small_whole(high) || *low > *high) return {};
  QuantisedForm form{clamp.operand(1), *low, *high};
  if (form.x.def->is(Opcode::Add) && !is_leaf(form.x))
    for (int i : {0, 1})
      if (auto added = number_of(form.x.def->operand(i)); is_small_whole(added)) {
        form.offset = *added;
        form.x = form.x.def->operand(1 - i);
        break;
      }
  if (!form.x.def->is(Opcode::RoundNearestEven) || is_leaf(form.x)) return {};
  form.x = form.x.def->operand(0);
  return holds_bounds(convert, form) ? std::optional(form) : std::nullopt;
}

kernel::Register QuantisedForm::emit(kernel::Builder& builder, kernel::Register value,
                                     kernel::Scalar to) const {
  return builder.narrow(value, to, static_cast<int64_t>(low), static_cast<int64_t>(high),
                        static_cast<int64_t>(offset), magnitude_bound(x) <= kernel::kMaxBounded);
}

std::optional<RequantisedForm> requantised_form(const Instruction& convert,
                                                const std::function<bool(Value)>& is_leaf) {
  Value integer = convert.operand(0);
  if (!convert.is(Opcode::Convert) || convert.type().dtype != DType::F32) return {};
  double zero_point = 0;
  auto is_here = [&](Opcode opcode) { return integer.def->is(opcode) && !is_leaf(integer); };
  if (is_here(Opcode::Subtract)) {
    auto subtracted = number_of(integer.def->operand(1));
    if (integer.dtype() != DType::I32 || !is_small_whole(subtracted)) return {};
    zero_point = *subtracted;
    integer = integer.def->operand(0);
  }
  // A conversion of 8 or 16 bits to i32 loses nothing; wider integers are refused below.
  if (integer.dtype() == DType::I32 && is_here(Opcode::Convert) &&
      is_integer(integer.def->operand(0).dtype()))
    integer = integer.def->operand(0);
  if (!is_here(Opcode::Convert) || bit_width(integer.dtype()) > 16) return {};
  auto rounded = quantised_form(*integer.def, is_leaf);
  if (!rounded) return {};
  return RequantisedForm{*rounded, zero_point};
}

kernel::Register RequantisedForm::emit(KernelScalars& scalars, kernel::Register value) const {
  auto constant = [&](double number) { return scalars.constant(value, number); };
  value = scalars.max_fast(value, constant(rounded.low - rounded.offset));
  value = scalars.round(scalars.min_fast(value, constant(rounded.high - rounded.offset)));
  double moved = rounded.offset - zero_point;
  return moved == 0 ? value : scalars.add(value, constant(moved));
}

} // namespace firn::lower
