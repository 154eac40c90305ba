// Ops about shapes and indices, and the deterministic random numbers: iota, dim_size, dynamic_iota, non_zero,
// rng_uniform.
#include "compiler/graph/evaluate_wide_elements.h"

#include <cmath>

namespace firn::evaluation {

namespace {

Expected<Values> iota(const OpCall& call) {
  auto dims = call.result_dims();
  if (!dims) return dims.error();
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= dims->size()) return call.fail("dim is out of range");
  auto result = call.allocate(call.result_dtype(), *dims);
  if (!result) return result.error();
  WideElements wide(domain_of(call.result_dtype()), (*result)->num_elements());
  if (wide.domain == Domain::Text) return call.unsupported("strings cannot be counted");
  int64_t extent = (*dims)[dim], inner = product(*dims, dim + 1, dims->size());
  for (int64_t i = 0; i < (*result)->num_elements(); ++i) {
    int64_t index = i / inner % extent;
    if (wide.domain == Domain::Real) wide.real[static_cast<size_t>(i)] = static_cast<double>(index);
    if (wide.domain == Domain::Integer) wide.integer[static_cast<size_t>(i)] = index;
    if (wide.domain == Domain::Complex) wide.complex[static_cast<size_t>(i)] = static_cast<double>(index);
  }
  store_all(wide, **result);
  return one(*result);
}

Expected<Values> dim_size(const OpCall& call) {
  auto dim = static_cast<size_t>(call.integer("dim"));
  if (dim >= call.tensor(0).dims().size())
    return call.fail("dim is out of range for " + describe(call.tensor(0)));
  return one(Literal::of<int64_t>(DType::I64, {}, {call.tensor(0).dims()[dim]}));
}

// The number of steps of `delta` from start that stay before limit.
int64_t count_integers(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  auto distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                            : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  uint64_t count = (distance - 1) / step + 1;
  return count > INT64_MAX ? INT64_MAX : static_cast<int64_t>(count);
}

Expected<Values> dynamic_iota(const OpCall& call) {
  if (call.num_operands() != 3) return call.fail("wants start, limit and delta");
  for (int i = 0; i < 3; ++i)
    if (call.tensor(i).num_elements() != 1) return call.fail("start, limit and delta must be scalars");
  DType dtype = call.tensor(0).dtype();
  WideElements start = load_all(call.tensor(0)), limit = load_all(call.tensor(1)),
               delta = load_all(call.tensor(2));
  if (start.domain == Domain::Complex) return call.unsupported("has no meaning for complex numbers");
  bool real = start.domain == Domain::Real;
  int64_t count = 0;
  if (real ? delta.real[0] == 0 || std::isnan(delta.real[0]) : delta.integer[0] == 0)
    return call.fail("delta is 0");
  if (real) {
    double steps = std::ceil((limit.real[0] - start.real[0]) / delta.real[0]);
    if (std::isnan(steps) || steps > 1e15) return call.fail("the number of elements is not finite");
    count = std::max<int64_t>(0, static_cast<int64_t>(std::max(steps, 0.0)));
  } else {
    count = count_integers(start.integer[0], limit.integer[0], delta.integer[0]);
  }
  auto result = call.allocate(dtype, {count});
  if (!result) return result.error();
  WideElements wide(start.domain, count);
  for (int64_t i = 0; i < count; ++i) {
    if (real)
      wide.real[static_cast<size_t>(i)] = start.real[0] + static_cast<double>(i) * delta.real[0];
    else
      wide.integer[static_cast<size_t>(i)] =
          static_cast<int64_t>(static_cast<uint64_t>(start.integer[0]) +
                               static_cast<uint64_t>(i) * static_cast<uint64_t>(delta.integer[0]));
  }
  store_all(wide, **result);
  return one(*result);
}

bool is_zero(const WideElements& wide, size_t index) {
  if (wide.domain == Domain::Real) return wide.real[index] == 0;
  if (wide.domain == Domain::Integer) return wide.integer[index] == 0;
  return wide.complex[index] == std::complex<double>();
}

Expected<Values> non_zero(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  if (operand.dtype() == DType::String) return call.unsupported("has no meaning for strings");
  WideElements wide = load_all(operand);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < operand.num_elements(); ++i)
    if (!is_zero(wide, static_cast<size_t>(i))) found.push_back(i);
  auto count = static_cast<int64_t>(found.size());
  Dims strides = row_major_strides(operand.dims());
  auto result = call.allocate(DType::I64, {static_cast<int64_t>(strides.size()), count});
  if (!result) return result.error();
  std::span<int64_t> rows = (*result)->mutable_data<int64_t>();
  for (size_t dim = 0; dim < strides.size(); ++dim)
    for (size_t i = 0; i < found.size(); ++i)
      rows[dim * found.size() + i] = found[i] / strides[dim] % operand.dims()[dim];
  return Values{*result, Literal::of<int64_t>(DType::I64, {}, {count})};
}

// SplitMix64's output function.
uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

} // namespace

Expected<Values> evaluate_shape(const OpCall& call) {
  switch (call.opcode()) {
  case Opcode::DimSize: return dim_size(call);
  case Opcode::DynamicIota: return dynamic_iota(call);
  case Opcode::Iota: return iota(call);
  case Opcode::NonZero: return non_zero(call);
  default: return call.unsupported("is not evaluated");
  }
}

// Element i depends on the seed and i alone: u(i) = top bits of scramble(scramble(seed) + (i + 1) * golden),
// 24 of them (53 for f64), over 2^24 (2^53); the value is low + u * (high - low), in f64, rounded once.
Expected<Values> evaluate_random(const OpCall& call) {
  if (call.num_operands() < 2) return call.fail("wants low and high");
  auto dims = call.result_dims();
  if (!dims && call.num_operands() == 3) dims = call.tensor(2).to_ints();
  if (!dims) return dims.error();
  DType dtype = call.result_dtype();
  if (!is_float(dtype)) return call.unsupported("has no meaning for " + std::string(dtype_name(dtype)));
  if (call.tensor(0).num_elements() != 1 || call.tensor(1).num_elements() != 1)
    return call.fail("low and high must be scalars");
  auto result = call.allocate(dtype, *dims);
  if (!result) return result.error();
  int bits = dtype == DType::F64 ? 53 : 24;
  double low = call.tensor(0).get_double(0), high = call.tensor(1).get_double(0);
  uint64_t base = scramble(static_cast<uint64_t>(call.integer("seed", 0)));
  WideElements wide(Domain::Real, (*result)->num_elements());
  for (int64_t i = 0; i < (*result)->num_elements(); ++i) {
    uint64_t word = scramble(base + (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u) >> (64 - bits);
    wide.real[static_cast<size_t>(i)] = low + std::ldexp(static_cast<double>(word), -bits) * (high - low);
  }
  store_all(wide, **result);
  return one(*result);
}

} // namespace firn::evaluation
