// Quantise and dequantise, one element after the other.
#include "compiler/graph/evaluate_wide_elements.h"

#include <algorithm>
#include <cmath>

namespace firn::evaluation {
namespace {

// A scale or zero point, by the indices of x.
class Parameter {
public:
  Parameter(const OpCall& call, int operand) : values_(load_all(call.tensor(operand))) {
    const Dims &x = call.tensor(0).dims(), &own = call.tensor(operand).dims();
    const int64_t block = call.integer("block");
    const auto axis = static_cast<size_t>(call.integer("axis"));
    strides_.assign(x.size(), 0);
    blocks_.assign(x.size(), 1);
    if (own.empty()) return;
    if (own.size() == 1 && block == 0) {
      strides_[axis] = 1;
      return;
    }
    if (block > 0) blocks_[axis] = block;
    for (size_t d = own.size(), stride = 1; d-- > 0; stride *= static_cast<size_t>(own[d]))
      strides_[d] = own[d] == 1 ? 0 : static_cast<int64_t>(stride);
  }

  double real(const Dims& index) const {
    size_t at = position(index);
    return values_.domain == Domain::Real ? values_.real[at] : static_cast<double>(values_.integer[at]);
  }
  int64_t integer(const Dims& index) const { return values_.integer[position(index)]; }

private:
  size_t position(const Dims& index) const {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] / blocks_[d] * strides_[d];
    return static_cast<size_t>(at);
  }

  WideElements values_;
  Dims strides_, blocks_;
};

// Calls f(i, index) for each element in row-major order.
template <class F> void for_each_element(const Dims& dims, F f) {
  const int64_t count = product(dims);
  Dims index(dims.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    f(static_cast<size_t>(i), index);
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
}

// The integer nearest to a number that is whole, or infinite; 0 for NaN.
int64_t bounded_integer(DType dtype, double whole) {
  const int bits = bit_width(dtype);
  const double low = is_signed(dtype) ? -std::ldexp(1.0, bits - 1) : 0,
               high = low + std::ldexp(1.0, bits) - 1;
  return std::isnan(whole) ? 0 : static_cast<int64_t>(std::clamp(whole, low, high));
}

} // namespace

Expected<Values> evaluate_quantize(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  const DType from = operand.dtype(), to = call.result_dtype(),
              wide = from == DType::F64 ? DType::F64 : DType::F32;
  auto result = call.allocate(to, operand.dims());
  if (!result) return result.error();
  const WideElements x = load_all(operand);
  const Parameter scale(call, 1);
  const auto zero = call.num_operands() == 3 ? std::optional(Parameter(call, 2)) : std::nullopt;
  WideElements y(domain_of(to), operand.num_elements());
  for_each_element(operand.dims(), [&](size_t i, const Dims& index) {
    double value = round_real(from, x.real[i] / scale.real(index));
    if (is_integer(to)) value = std::nearbyint(value);
    if (zero) value = round_real(wide, value + zero->real(index));
    if (is_integer(to))
      y.integer[i] = bounded_integer(to, value);
    else
      y.real[i] = round_real(to, value, call.flag("saturate"));
  });
  store_all(y, **result);
  return one(*result);
}

Expected<Values> evaluate_dequantize(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  const DType to = call.result_dtype();
  auto result = call.allocate(to, operand.dims());
  if (!result) return result.error();
  const WideElements x = load_all(operand);
  const Parameter scale(call, 1);
  const auto zero = call.num_operands() == 3 ? std::optional(Parameter(call, 2)) : std::nullopt;
  WideElements y(Domain::Real, operand.num_elements());
  for_each_element(operand.dims(), [&](size_t i, const Dims& index) {
    double difference;
    if (x.domain == Domain::Real) {
      difference = round_real(DType::F32, x.real[i]);
      if (zero) difference = round_real(DType::F32, difference - round_real(DType::F32, zero->real(index)));
    } else {
      int64_t whole = wrap_integer(DType::I32, x.integer[i]);
      if (zero) whole = wrap_integer(DType::I32, whole - wrap_integer(DType::I32, zero->integer(index)));
      difference = round_real(to, static_cast<double>(whole));
    }
    y.real[i] = round_real(to, difference * scale.real(index));
  });
  store_all(y, **result);
  return one(*result);
}

} // namespace firn::evaluation
