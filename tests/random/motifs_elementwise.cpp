// Motifs of elementwise operators, with broadcasting and casts.
#include "tests/random/motifs.h"

#include <cmath>

namespace firn::test {
namespace {

std::string smooth_unary(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  switch (g.random.between(0, 7)) {
  case 0: return g.add("LeakyRelu", {x}, {attribute_real("alpha", 0.125f)});
  case 1: return g.add("Elu", {x}, {attribute_real("alpha", 0.75f)});
  case 2: return g.add("Celu", {x}, {attribute_real("alpha", 1.25f)});
  case 3: return g.add("HardSigmoid", {x}, {attribute_real("alpha", 0.25f), attribute_real("beta", 0.5f)});
  case 4: return g.add("Gelu", {x}, {attribute_text("approximate", g.random.pick({"none", "tanh"}))});
  case 5: return g.add("Swish", {x}, {attribute_real("alpha", g.random.pick({1.0f, 1.5f}))});
  default: break;
  }
  return g.add(
      g.random.pick({"Relu", "Relu", "Sigmoid", "Tanh", "Erf", "HardSwish", "Selu", "Softplus", "Softsign",
                     "Mish", "Sin", "Cos", "Atan", "Asinh", "Abs", "Neg", "Identity", "Exp"}),
      {x});
}

// Functions with a domain, kept inside it.
std::string bounded_unary(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  if (g.random.chance(0.5))
    return g.add(g.random.pick({"Log", "Sqrt", "Reciprocal", "Acosh"}), {g.away_from_zero(x, 1.25)});
  std::string small = g.add("Mul", {g.add("Tanh", {x}), g.constant_scalar(dtype, 0.75)});
  return g.add(g.random.pick({"Asin", "Acos", "Atan", "Atanh", "Tan", "Cos", "Sinh", "Cosh"}), {small});
}

std::string jumping_unary(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  switch (g.random.between(0, 2)) {
  case 0: return g.add("ThresholdedRelu", {x}, {attribute_real("alpha", 0.5f)});
  case 1: return g.add("Shrink", {x}, {attribute_real("lambd", 0.75f), attribute_real("bias", 0.25f)});
  default: return g.add(g.random.pick({"Floor", "Ceil", "Round", "Sign"}), {x});
  }
}

std::string float_binary(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  std::string y = g.broadcastable(g.dtype(x), g.dims(x));
  if (g.random.chance(0.3)) std::swap(x, y);
  return g.add(g.random.pick({"Add", "Add", "Sub", "Mul", "Mul", "Min", "Max"}), {x, y});
}

std::string divide_or_power(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  std::string y = g.broadcastable(dtype, g.dims(x));
  if (g.random.chance(0.6)) return g.add("Div", {x, g.away_from_zero(y, 0.5)});
  std::string exponent = g.constant_scalar(dtype, g.random.pick({2.0, 3.0, 0.5, -1.0, 1.5, -0.5}));
  if (g.random.chance(0.3)) exponent = g.add("Tanh", {y});
  return g.add("Pow", {g.away_from_zero(x, 0.5), exponent});
}

std::string variadic(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  Names operands{x};
  for (int64_t i = g.random.between(1, 3); i > 0; --i)
    operands.push_back(g.broadcastable(g.dtype(x), g.dims(x)));
  return g.add(g.random.pick({"Sum", "Mean", "Max", "Min"}), operands);
}

std::string clip(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  DType dtype = g.dtype(x);
  std::string low = g.random.chance(0.2) ? Growth::kAbsent : g.constant_scalar(dtype, -0.75);
  std::string high = g.random.chance(0.2) ? Growth::kAbsent : g.constant_scalar(dtype, 1.5);
  return g.add("Clip", {x, low, high});
}

std::string prelu(Growth& g) {
  std::string x = g.find(is_any_float);
  if (x.empty()) return "";
  Dims dims = g.dims(x);
  for (size_t i = 0; i < dims.size(); ++i)
    if (i != 1 || g.random.chance(0.2)) dims[i] = 1;
  return g.add("PRelu", {x, g.constant(g.draw_literal(g.dtype(x), dims))});
}

std::string compare(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dtype() != DType::Bool; });
  if (x.empty()) return "";
  std::string y = g.broadcastable(g.dtype(x), g.dims(x));
  return g.add(g.random.pick({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}), {x, y});
}

std::string logic(Growth& g) {
  std::string x = g.find([](const Literal& v) { return is_any(v) && v.dtype() == DType::Bool; });
  if (x.empty()) return compare(g);
  if (g.random.chance(0.3)) return g.add("Not", {x});
  return g.add(g.random.pick({"And", "Or", "Xor"}), {x, g.broadcastable(DType::Bool, g.dims(x))});
}

std::string where(Growth& g) {
  std::string x = g.find(is_any);
  if (x.empty()) return "";
  std::string condition = g.broadcastable(DType::Bool, g.dims(x));
  if (condition.empty()) return "";
  std::string y = g.broadcastable(g.dtype(x), g.dims(x));
  if (g.random.chance(0.5)) std::swap(x, y);
  return g.add("Where", {condition, x, y});
}

std::string cast(Growth& g) {
  std::string x = g.find(is_any);
  if (x.empty()) return "";
  DType to = g.random.chance(0.6) ? g.draw_float() : g.random.chance(0.8) ? g.draw_integer() : DType::Bool;
  // Floats outside of an integer's range have no defined conversion.
  if (is_float(g.dtype(x)) && is_integer(to)) {
    x = g.add("Clip", {x, g.constant_scalar(g.dtype(x), is_signed(to) ? -100 : 0),
                       g.constant_scalar(g.dtype(x), 100)});
    if (g.random.chance(0.5)) x = g.add("Round", {x});
  }
  return g.add("Cast", {x}, {attribute("to", wire_type(to))});
}

// Numbers without a sign up to the last that their bits hold, half of which those with a sign lack: from
// floats and integers, to integers of all sizes, and as operands.
std::string whole_range(Growth& g) {
  DType dtype = g.random.pick({DType::U64, DType::U64, DType::U32});
  bool is_real = g.random.chance(0.5);
  DType from = !is_real              ? g.random.pick({dtype, DType::I64})
               : dtype == DType::U64 ? g.random.pick({DType::F32, DType::F64, DType::BF16})
                                     : g.random.pick({DType::F32, DType::F64});
  auto literal = std::make_shared<Literal>(from, g.draw_dims(g.random.between(1, 3)));
  for (int64_t i = 0; i < literal->num_elements(); ++i) {
    if (is_real) // below the end also where it is rounded
      literal->set_double(i, std::ldexp(g.random.uniform(0, 0.99), bit_width(dtype)));
    else
      literal->set_int(i, static_cast<int64_t>(g.random.bits()));
  }
  std::string x = g.input(literal);
  if (is_real || from != dtype) x = g.add("Cast", {x}, {attribute("to", wire_type(dtype))});
  switch (g.random.between(0, 3)) {
  case 0: return g.add("Cast", {x}, {attribute("to", wire_type(g.draw_integer()))});
  case 1: return g.add("Div", {x, g.fresh(dtype, g.dims(x), Growth::Content::Positive)});
  case 2:
    return g.add(g.random.pick({"Min", "Max", "Greater", "Equal"}), {x, g.broadcastable(dtype, g.dims(x))});
  default: return x;
  }
}

std::string integer_binary(Growth& g) {
  std::string x = g.find(is_any_integer);
  if (x.empty()) x = g.input(g.draw_literal(g.draw_integer(), g.draw_dims(g.random.between(1, 4))));
  DType dtype = g.dtype(x);
  std::string y = g.broadcastable(dtype, g.dims(x));
  if (y.empty()) return "";
  switch (g.random.between(0, 4)) {
  case 0:
    return g.add(g.random.pick({"Div", "Mod"}), {x, g.fresh(dtype, g.dims(y), Growth::Content::Positive)});
  case 1: return g.add(g.random.pick({"BitwiseAnd", "BitwiseOr", "BitwiseXor"}), {x, y});
  case 2:
    if (!is_unsigned(dtype)) return g.add(g.random.pick({"Abs", "Neg", "BitwiseNot", "Sign"}), {x});
    return g.add("BitShift", {x, g.fresh(dtype, g.dims(y), Growth::Content::Positive)},
                 {attribute_text("direction", g.random.pick({"LEFT", "RIGHT"}))});
  default: return g.add(g.random.pick({"Add", "Sub", "Mul", "Min", "Max"}), {x, y});
  }
}

std::string shift(Growth& g) {
  DType dtype = g.random.pick({DType::U8, DType::U16, DType::U32, DType::U64});
  std::string x = g.find([&](const Literal& v) { return is_any(v) && v.dtype() == dtype; });
  if (x.empty()) x = g.fresh(dtype, g.draw_dims(g.random.between(1, 3)));
  return g.add("BitShift", {x, g.fresh(dtype, g.dims(x))},
               {attribute_text("direction", g.random.pick({"LEFT", "RIGHT"}))});
}

// Several elementwise nodes in a row, on one line of values.
std::string chain(Growth& g) {
  std::string x = g.find(is_any_float);
  for (int64_t i = g.random.between(2, 6); i > 0 && !x.empty(); --i) {
    if (g.random.chance(0.5))
      x = g.add(g.random.pick({"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "HardSwish", "Softsign"}), {x});
    else
      x = g.add(g.random.pick({"Add", "Sub", "Mul", "Max"}), {x, g.broadcastable(g.dtype(x), g.dims(x))});
  }
  return x;
}

} // namespace

std::span<const Motif> elementwise_motifs() {
  static constexpr Motif motifs[] = {
      {"smooth_unary", 6, smooth_unary},
      {"bounded_unary", 3, bounded_unary},
      {"jumping_unary", 2, jumping_unary},
      {"float_binary", 8, float_binary},
      {"divide_or_power", 3, divide_or_power},
      {"variadic", 2, variadic},
      {"clip", 1, clip},
      {"prelu", 1, prelu},
      {"compare", 2, compare},
      {"logic", 2, logic},
      {"where", 3, where},
      {"cast", 4, cast},
      {"whole_range", 2, whole_range},
      {"integer_binary", 3, integer_binary},
      {"shift", 1, shift},
      {"chain", 4, chain},
  };
  return motifs;
}

} // namespace firn::test
