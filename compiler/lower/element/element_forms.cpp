// Recognises expressions of several elementwise ops, and emits their code.
#include "compiler/lower/element/element_forms.h"

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

} // namespace

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
  if (!is_here(Opcode::Narrow) || bit_width(integer.dtype()) > 16) return {};
  auto number = [&](const char* name) {
    return static_cast<double>(integer.def->attributes().integer(name, 0));
  };
  return RequantisedForm{integer.def->operand(0), number("low"), number("high"), number("zero"), zero_point};
}

kernel::Register RequantisedForm::emit(KernelScalars& scalars, kernel::Register value) const {
  auto constant = [&](double number) { return scalars.constant(value, number); };
  value = scalars.max_fast(value, constant(low - added));
  value = scalars.round(scalars.min_fast(value, constant(high - added)));
  double moved = added - zero_point;
  return moved == 0 ? value : scalars.add(value, constant(moved));
}

} // namespace firn::lower
