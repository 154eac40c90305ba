// Wide elements: reading and writing literals of every dtype, rounding, and folding.
#include "compiler/graph/evaluate_wide_elements.h"

#include <bit>
#include <cmath>
#include <limits>

namespace firn::evaluation {

Domain domain_of(DType dtype) {
  if (is_float(dtype)) return Domain::Real;
  if (is_complex(dtype)) return Domain::Complex;
  return dtype == DType::String ? Domain::Text : Domain::Integer;
}

void WideElements::resize(int64_t count) {
  auto size = static_cast<size_t>(count);
  if (domain == Domain::Real && real.size() < size) real.resize(size);
  if (domain == Domain::Integer && integer.size() < size) integer.resize(size);
  if (domain == Domain::Complex && complex.size() < size) complex.resize(size);
}

void WideElements::copy_element(int64_t to, const WideElements& from, int64_t index) {
  auto target = static_cast<size_t>(to), source = static_cast<size_t>(index);
  if (domain == Domain::Real) real[target] = from.real[source];
  if (domain == Domain::Integer) integer[target] = from.integer[source];
  if (domain == Domain::Complex) complex[target] = from.complex[source];
}

float round_to_odd(double x) {
  float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x) || std::isinf(x)) return nearest;
  float toward_zero =
      std::fabs(static_cast<double>(nearest)) > std::fabs(x) ? std::nextafterf(nearest, 0.0f) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(toward_zero) | 1u);
}

double round_real(DType dtype, double x, bool saturate) {
  switch (dtype) {
  case DType::F64: return x;
  case DType::F32: return static_cast<float>(x);
  case DType::F16: return half_to_float(double_to_half(x));
  case DType::BF16: return bfloat16_to_float(float_to_bfloat16(round_to_odd(x)));
  default: return float8_to_float(dtype, float_to_float8(dtype, round_to_odd(x), saturate));
  }
}

int64_t wrap_integer(DType dtype, int64_t x) {
  if (dtype == DType::Bool) return x != 0;
  int unused = 64 - bit_width(dtype);
  if (unused == 0) return x;
  uint64_t shifted = static_cast<uint64_t>(x) << unused;
  return is_signed(dtype) ? static_cast<int64_t>(shifted) >> unused : static_cast<int64_t>(shifted >> unused);
}

namespace {

// Elements of mapped literals may be misaligned, hence memcpy.
template <class Stored, class Wide, class F>
void read_elements(const std::byte* bytes, int64_t count, Wide* wide, F convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + static_cast<size_t>(i) * sizeof(Stored), sizeof(Stored));
    wide[i] = convert(stored);
  }
}
template <class Stored, class Wide, class F>
void write_elements(const Wide* wide, int64_t count, std::byte* bytes, F convert) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored = convert(wide[i]);
    std::memcpy(bytes + static_cast<size_t>(i) * sizeof(Stored), &stored, sizeof(Stored));
  }
}

void load_real(const Literal& literal, int64_t start, int64_t count, double* wide) {
  DType dtype = literal.dtype();
  if (bit_width(dtype) < 8) {
    for (int64_t i = 0; i < count; ++i) wide[i] = literal.get_double(start + i);
    return;
  }
  const std::byte* bytes = literal.bytes().data() + start * (bit_width(dtype) / 8);
  switch (dtype) {
  case DType::F64: return read_elements<double>(bytes, count, wide, [](double x) { return x; });
  case DType::F32:
    return read_elements<float>(bytes, count, wide, [](float x) { return static_cast<double>(x); });
  case DType::F16:
    return read_elements<uint16_t>(bytes, count, wide, [](uint16_t x) { return half_to_float(x); });
  case DType::BF16:
    return read_elements<uint16_t>(bytes, count, wide, [](uint16_t x) { return bfloat16_to_float(x); });
  default:
    return read_elements<uint8_t>(bytes, count, wide, [=](uint8_t x) { return float8_to_float(dtype, x); });
  }
}

void store_real(const double* wide, int64_t count, Literal& literal, int64_t start) {
  DType dtype = literal.dtype();
  if (bit_width(dtype) < 8) {
    for (int64_t i = 0; i < count; ++i) literal.set_double(start + i, round_real(dtype, wide[i]));
    return;
  }
  std::byte* bytes = literal.mutable_bytes().data() + start * (bit_width(dtype) / 8);
  switch (dtype) {
  case DType::F64: return write_elements<double>(wide, count, bytes, [](double x) { return x; });
  case DType::F32:
    return write_elements<float>(wide, count, bytes, [](double x) { return static_cast<float>(x); });
  case DType::F16:
    return write_elements<uint16_t>(wide, count, bytes, [](double x) { return double_to_half(x); });
  case DType::BF16:
    return write_elements<uint16_t>(wide, count, bytes,
                                    [](double x) { return float_to_bfloat16(round_to_odd(x)); });
  default:
    return write_elements<uint8_t>(wide, count, bytes,
                                   [=](double x) { return float_to_float8(dtype, round_to_odd(x), false); });
  }
}

template <class Stored> int64_t widen(Stored x) {
  return static_cast<int64_t>(x);
}
template <class Stored> Stored narrow(int64_t x) {
  return static_cast<Stored>(x);
}

void load_integer(const Literal& literal, int64_t start, int64_t count, int64_t* wide) {
  DType dtype = literal.dtype();
  if (bit_width(dtype) < 8) {
    for (int64_t i = 0; i < count; ++i) wide[i] = literal.get_int(start + i);
    return;
  }
  const std::byte* bytes = literal.bytes().data() + start * (bit_width(dtype) / 8);
  switch (dtype) {
  case DType::I32: return read_elements<int32_t>(bytes, count, wide, widen<int32_t>);
  case DType::U32: return read_elements<uint32_t>(bytes, count, wide, widen<uint32_t>);
  case DType::I16: return read_elements<int16_t>(bytes, count, wide, widen<int16_t>);
  case DType::U16: return read_elements<uint16_t>(bytes, count, wide, widen<uint16_t>);
  case DType::I8: return read_elements<int8_t>(bytes, count, wide, widen<int8_t>);
  case DType::U8: return read_elements<uint8_t>(bytes, count, wide, widen<uint8_t>);
  case DType::Bool:
    return read_elements<uint8_t>(bytes, count, wide, [](uint8_t x) { return int64_t{x != 0}; });
  default: return read_elements<int64_t>(bytes, count, wide, widen<int64_t>);
  }
}

void store_integer(const int64_t* wide, int64_t count, Literal& literal, int64_t start) {
  DType dtype = literal.dtype();
  if (bit_width(dtype) < 8) {
    for (int64_t i = 0; i < count; ++i) literal.set_int(start + i, wrap_integer(dtype, wide[i]));
    return;
  }
  std::byte* bytes = literal.mutable_bytes().data() + start * (bit_width(dtype) / 8);
  switch (bit_width(dtype)) {
  case 8:
    if (dtype == DType::Bool)
      return write_elements<uint8_t>(wide, count, bytes, [](int64_t x) { return uint8_t{x != 0}; });
    return write_elements<uint8_t>(wide, count, bytes, narrow<uint8_t>);
  case 16: return write_elements<uint16_t>(wide, count, bytes, narrow<uint16_t>);
  case 32: return write_elements<uint32_t>(wide, count, bytes, narrow<uint32_t>);
  default: return write_elements<int64_t>(wide, count, bytes, narrow<int64_t>);
  }
}

void load_complex(const Literal& literal, int64_t start, int64_t count, std::complex<double>* wide) {
  const std::byte* bytes = literal.bytes().data() + start * (bit_width(literal.dtype()) / 8);
  if (literal.dtype() == DType::C128)
    return read_elements<std::complex<double>>(bytes, count, wide, [](std::complex<double> x) { return x; });
  read_elements<std::complex<float>>(bytes, count, wide,
                                     [](std::complex<float> x) { return std::complex<double>(x); });
}

void store_complex(const std::complex<double>* wide, int64_t count, Literal& literal, int64_t start) {
  std::byte* bytes = literal.mutable_bytes().data() + start * (bit_width(literal.dtype()) / 8);
  if (literal.dtype() == DType::C128)
    return write_elements<std::complex<double>>(wide, count, bytes, [](std::complex<double> x) { return x; });
  write_elements<std::complex<float>>(wide, count, bytes,
                                      [](std::complex<double> x) { return std::complex<float>(x); });
}

} // namespace

void load_elements(const Literal& literal, int64_t start, int64_t count, WideElements& wide) {
  wide.domain = domain_of(literal.dtype());
  FIRN_CHECK(wide.domain != Domain::Text, "strings have no wide");
  wide.resize(count);
  if (count == 0) return;
  if (wide.domain == Domain::Real) load_real(literal, start, count, wide.real.data());
  if (wide.domain == Domain::Integer) load_integer(literal, start, count, wide.integer.data());
  if (wide.domain == Domain::Complex) load_complex(literal, start, count, wide.complex.data());
}

void store_elements(const WideElements& wide, int64_t count, Literal& literal, int64_t start) {
  FIRN_CHECK(wide.domain == domain_of(literal.dtype()), "wide stored to a literal of another domain");
  if (count == 0) return;
  if (wide.domain == Domain::Real) store_real(wide.real.data(), count, literal, start);
  if (wide.domain == Domain::Integer) store_integer(wide.integer.data(), count, literal, start);
  if (wide.domain == Domain::Complex) store_complex(wide.complex.data(), count, literal, start);
}

WideElements load_all(const Literal& literal) {
  WideElements wide;
  load_elements(literal, 0, literal.num_elements(), wide);
  return wide;
}

void store_all(const WideElements& wide, Literal& literal) {
  store_elements(wide, literal.num_elements(), literal, 0);
}

template <class T> std::vector<T> load_as(const Literal& literal) {
  WideElements wide = load_all(literal);
  if constexpr (std::is_same_v<T, double>) {
    if (wide.domain == Domain::Real) return std::move(wide.real);
    if (literal.dtype() != DType::U64) return {wide.integer.begin(), wide.integer.end()};
    std::vector<double> values;
    for (int64_t x : wide.integer) values.push_back(static_cast<double>(static_cast<uint64_t>(x)));
    return values;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return std::move(wide.integer);
  } else {
    if (wide.domain == Domain::Complex) return std::move(wide.complex);
    return {wide.real.begin(), wide.real.end()};
  }
}
template std::vector<double> load_as<double>(const Literal&);
template std::vector<int64_t> load_as<int64_t>(const Literal&);
template std::vector<std::complex<double>> load_as<std::complex<double>>(const Literal&);

double ieee_maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double ieee_minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

bool less(DType dtype, int64_t a, int64_t b) {
  return is_unsigned(dtype) ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

namespace {

template <class T, class F>
bool fold_with(T& accumulator, const T* values, int64_t count, int64_t stride, F combine) {
  T sum = accumulator;
  for (int64_t i = 0; i < count; ++i) sum = combine(sum, values[i * stride]);
  accumulator = sum;
  return true;
}

bool fold_real(Opcode reducer, double& element, const double* values, int64_t count, int64_t stride) {
  switch (reducer) {
  case Opcode::Add:
    return fold_with(element, values, count, stride, [](double a, double b) { return a + b; });
  case Opcode::Multiply:
    return fold_with(element, values, count, stride, [](double a, double b) { return a * b; });
  case Opcode::Maximum: return fold_with(element, values, count, stride, ieee_maximum);
  case Opcode::Minimum: return fold_with(element, values, count, stride, ieee_minimum);
  default: return false;
  }
}

// Wrapping to the width may wait until the end: all these commute with reduction modulo 2^width, or stay in
// range.
bool fold_integer(Opcode reducer, DType dtype, int64_t& element, const int64_t* values, int64_t count,
                  int64_t stride) {
  bool boolean = dtype == DType::Bool;
  auto run = [&](auto combine) { return fold_with(element, values, count, stride, combine); };
  switch (reducer) {
  case Opcode::Add:
    if (boolean) return run([](int64_t a, int64_t b) { return a | b; });
    return run([](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    });
  case Opcode::Multiply:
    return run([](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    });
  case Opcode::Maximum: return run([=](int64_t a, int64_t b) { return less(dtype, a, b) ? b : a; });
  case Opcode::Minimum: return run([=](int64_t a, int64_t b) { return less(dtype, b, a) ? b : a; });
  case Opcode::And: return run([](int64_t a, int64_t b) { return a & b; });
  case Opcode::Or: return run([](int64_t a, int64_t b) { return a | b; });
  case Opcode::Xor: return run([](int64_t a, int64_t b) { return a ^ b; });
  default: return false;
  }
}

} // namespace

bool fold(Opcode reducer, DType dtype, WideElements& accumulator, int64_t element, const WideElements& values,
          int64_t start, int64_t count, int64_t stride) {
  auto index = static_cast<size_t>(element);
  switch (accumulator.domain) {
  case Domain::Real:
    return fold_real(reducer, accumulator.real[index], values.real.data() + start, count, stride);
  case Domain::Integer:
    return fold_integer(reducer, dtype, accumulator.integer[index], values.integer.data() + start, count,
                        stride);
  case Domain::Complex: {
    using C = std::complex<double>;
    C& target = accumulator.complex[index];
    const C* source = values.complex.data() + start;
    if (reducer == Opcode::Add)
      return fold_with(target, source, count, stride, [](C a, C b) { return a + b; });
    if (reducer == Opcode::Multiply)
      return fold_with(target, source, count, stride, [](C a, C b) { return a * b; });
    return false;
  }
  case Domain::Text: return false;
  }
  return false;
}

} // namespace firn::evaluation
