// Type inference of quantisation.
#include "compiler/graph/infer_type_rules.h"

namespace firn {

bool TypeRules::is_parameter_of_x(const Type& parameter) const {
  const Type& x = type(0);
  const int64_t axis = attributes_.integer("axis", 0), block = attributes_.integer("block", 0);
  if (parameter.rank() == 0) return true;
  if (parameter.rank() == 1 && block == 0)
    return axis >= 0 && axis < x.rank() && parameter.dims[0] == x.dims[static_cast<size_t>(axis)];
  if (parameter.rank() != x.rank()) return false;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    Dim wanted = x.dims[d];
    if (block > 0 && static_cast<int64_t>(d) == axis) wanted = Dim((wanted.value() + block - 1) / block);
    if (!(parameter.dims[d] == wanted) && !(parameter.dims[d] == Dim(1))) return false;
  }
  return true;
}

std::optional<Diagnostic> TypeRules::not_quantization(DType zero_point) const {
  if (operands_.size() < 2 || operands_.size() > 3)
    return error("has " + std::to_string(operands_.size()) +
                 " operands, wants x, a scale and perhaps a zero point");
  const int64_t block = attributes_.integer("block", 0);
  if (block < 0 || !is_small(block)) return error("block is " + std::to_string(block));
  if (block > 0) {
    if (!axis_in_range("axis", rank(0))) return bad_axis("axis");
    if (!type(0).dims[static_cast<size_t>(attributes_.integer("axis"))].is_static())
      return error("has blocks along the symbolic dim " + std::to_string(attributes_.integer("axis")));
  }
  for (int i = 1; i < static_cast<int>(operands_.size()); ++i)
    if (!is_parameter_of_x(type(i)))
      return error(std::string(i == 1 ? "scale is " : "zero point is ") + type(i).to_string() +
                   ", which does not fit " + type(0).to_string());
  if (operands_.size() == 3 && type(2).dtype != zero_point)
    return error("zero point is " + type(2).to_string() + ", wants " + std::string(dtype_name(zero_point)));
  return std::nullopt;
}

Expected<TypeRules::Types> TypeRules::quantize() {
  const auto* to = attribute<DType>("to");
  if (!to) return missing("to");
  if ((!is_integer(*to) && !is_float(*to)) || bit_width(*to) > 16)
    return error("gives " + std::string(dtype_name(*to)) + ", wants integers or floats of at most 16 bits");
  if (auto wrong = not_quantization(*to)) return *wrong;
  if (!is_float(type(0).dtype) || bit_width(type(0).dtype) < 16 || type(1).dtype != type(0).dtype)
    return error("x is " + type(0).to_string() + " and scale " + type(1).to_string() +
                 ", wants floats of one dtype, of at least 16 bits");
  Type result = type(0);
  result.dtype = *to;
  return Types{result};
}

Expected<TypeRules::Types> TypeRules::narrow() {
  constexpr int64_t kMaxZero = 1 << 23; // f32 adds it to whole numbers without rounding
  auto result = common_type(0);
  if (!result) return result.error();
  if (result->dtype != DType::F32) return error("x is " + type(0).to_string() + ", wants f32");
  const auto* to = attribute<DType>("to");
  if (!to) return missing("to");
  const int bits = bit_width(*to);
  if (!is_integer(*to) || bits < 8 || bits > 32)
    return error("gives " + std::string(dtype_name(*to)) + ", wants integers of 8 to 32 bits");
  const int64_t low = attributes_.integer("low", 0), high = attributes_.integer("high", 0),
                zero = attributes_.integer("zero", 0), min = is_signed(*to) ? -(int64_t{1} << (bits - 1)) : 0,
                max = min + (int64_t{1} << bits) - 1;
  if (low > high || low < min || high > max)
    return error("is clamped to " + std::to_string(low) + " to " + std::to_string(high) +
                 ", wants bounds of " + std::string(dtype_name(*to)));
  if (zero < -kMaxZero || zero > kMaxZero) return error("zero is " + std::to_string(zero));
  result->dtype = *to;
  return Types{*result};
}

Expected<TypeRules::Types> TypeRules::dequantize() {
  if (auto wrong = not_quantization(operands_.empty() ? DType::U8 : type(0).dtype)) return *wrong;
  if (!is_integer(type(0).dtype) && !is_float(type(0).dtype))
    return error("x is " + type(0).to_string() + ", wants numbers");
  if (type(1).dtype != DType::F32 && type(1).dtype != DType::F64)
    return error("scale is " + type(1).to_string() + ", wants f32 or f64");
  Type result = type(0);
  result.dtype = type(1).dtype;
  return Types{result};
}

} // namespace firn
