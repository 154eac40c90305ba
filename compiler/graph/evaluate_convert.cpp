// Convert: between numbers of every dtype, and between numbers and their decimal text.
#include "compiler/graph/evaluate_wide_elements.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace firn::evaluation {

namespace {

int64_t smallest(DType dtype) {
  return is_signed(dtype) ? INT64_MIN >> (64 - bit_width(dtype)) : 0;
}
// The largest value; for u64 its bit pattern.
int64_t largest(DType dtype) {
  if (dtype == DType::Bool) return 1;
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bit_width(dtype) + (is_signed(dtype) ? 1 : 0)));
}

int64_t real_to_integer(DType dtype, double x, bool saturate) {
  if (dtype == DType::Bool) return x != 0;
  constexpr double two63 = 9223372036854775808.0;
  bool wide_unsigned = dtype == DType::U64 && x >= two63 && x < 2 * two63;
  if (saturate) {
    if (std::isnan(x)) return 0;
    double whole = std::trunc(x);
    double limit = std::ldexp(1.0, bit_width(dtype) - (is_signed(dtype) ? 1 : 0));
    if (whole >= limit) return largest(dtype);
    if (whole < (is_signed(dtype) ? -limit : 0.0)) return smallest(dtype);
  }
  if (wide_unsigned) return static_cast<int64_t>(static_cast<uint64_t>(x));
  int64_t whole = x >= -two63 && x < two63 ? static_cast<int64_t>(x) : INT64_MIN;
  return wrap_integer(dtype, whole);
}

int64_t integer_to_integer(const ElementOp& op, int64_t x) {
  if (!op.saturate || op.result == DType::Bool) return wrap_integer(op.result, x);
  bool negative = !is_unsigned(op.operand) && x < 0;
  if (negative) return std::max(x, smallest(op.result));
  return std::min(static_cast<uint64_t>(x), static_cast<uint64_t>(largest(op.result)));
}

// Beyond 2^53 the nearest f64 may sit on a tie of a narrower float that the integer is not on: the lowest
// bit, set when inexact (rounding to odd), keeps the second rounding right.
double integer_to_real(const ElementOp& op, int64_t x) {
  bool negative = !is_unsigned(op.operand) && x < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  double value;
  if (op.result == DType::F64) {
    value = static_cast<double>(magnitude);
  } else {
    int excess = 0;
    bool inexact = false;
    while (magnitude >> 53) {
      inexact |= magnitude & 1;
      magnitude >>= 1;
      ++excess;
    }
    value = std::ldexp(static_cast<double>(magnitude | (inexact ? 1 : 0)), excess);
  }
  return round_real(op.result, negative ? -value : value, op.saturate);
}

} // namespace

void convert_elements(const ElementOp& op, const WideElements& in, int64_t count, WideElements& out) {
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (out.domain == Domain::Real) {
      if (in.domain == Domain::Real) out.real[i] = round_real(op.result, in.real[i], op.saturate);
      if (in.domain == Domain::Integer) out.real[i] = integer_to_real(op, in.integer[i]);
      if (in.domain == Domain::Complex)
        out.real[i] = round_real(op.result, in.complex[i].real(), op.saturate);
    } else if (out.domain == Domain::Integer) {
      if (in.domain == Domain::Real) out.integer[i] = real_to_integer(op.result, in.real[i], op.saturate);
      if (in.domain == Domain::Integer) out.integer[i] = integer_to_integer(op, in.integer[i]);
      if (in.domain == Domain::Complex)
        out.integer[i] = real_to_integer(op.result, in.complex[i].real(), op.saturate);
    } else {
      DType part = op.result == DType::C64 ? DType::F32 : DType::F64;
      ElementOp to_part = op;
      to_part.result = part;
      if (in.domain == Domain::Real) out.complex[i] = round_real(part, in.real[i]);
      if (in.domain == Domain::Integer) out.complex[i] = integer_to_real(to_part, in.integer[i]);
      if (in.domain == Domain::Complex)
        out.complex[i] = {round_real(part, in.complex[i].real()), round_real(part, in.complex[i].imag())};
    }
  }
}

namespace {

// The shortest decimal that reads back as the same float, in the notation of numpy's str().
template <class F> std::string shortest_decimal(F x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  double magnitude = std::fabs(static_cast<double>(x));
  bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, x,
                           scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer, end.ptr);
  return scientific || text.find('.') != std::string::npos ? text : text + ".0";
}

std::string element_text(const Literal& literal, int64_t index) {
  DType dtype = literal.dtype();
  if (dtype == DType::F64) return shortest_decimal(literal.get_double(index));
  if (is_float(dtype)) return shortest_decimal(static_cast<float>(literal.get_double(index)));
  if (dtype == DType::U64) return std::to_string(static_cast<uint64_t>(literal.get_int(index)));
  return std::to_string(literal.get_int(index));
}

// Whole-string decimal numbers; "inf", "infinity" and "nan" in any case.
std::optional<double> parse_real(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) return {};
  return value;
}

// Decimal integers; those that do not parse as one are read as a float and truncated.
std::optional<int64_t> parse_integer(const std::string& text, bool* is_real) {
  const char *begin = text.data(), *end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  int64_t value = 0;
  if (auto parsed = std::from_chars(begin, end, value); parsed.ec == std::errc() && parsed.ptr == end)
    return value;
  uint64_t wide = 0;
  if (auto parsed = std::from_chars(begin, end, wide); parsed.ec == std::errc() && parsed.ptr == end)
    return static_cast<int64_t>(wide);
  *is_real = true;
  return {};
}

Result parse_element(const OpCall& call, const std::string& text, WideElements& wide) {
  DType dtype = call.result_dtype();
  bool is_real = wide.domain == Domain::Real;
  if (!is_real) {
    if (auto value = parse_integer(text, &is_real)) {
      wide.integer[0] = wrap_integer(dtype, *value);
      return {};
    }
  }
  auto value = parse_real(text);
  if (!value) return call.fail("string \"" + text.substr(0, 40) + "\" is not a number");
  if (wide.domain == Domain::Real)
    wide.real[0] = dtype == DType::F32 ? static_cast<double>(std::strtof(text.c_str(), nullptr))
                                       : round_real(dtype, *value, call.flag("saturate"));
  else
    wide.integer[0] = real_to_integer(dtype, *value, call.flag("saturate"));
  return {};
}

Expected<Values> from_text(const OpCall& call) {
  const auto& strings = call.tensor(0).string_values();
  auto result = call.allocate(call.result_dtype(), call.tensor(0).dims());
  if (!result) return result.error();
  WideElements wide(domain_of(call.result_dtype()), 1);
  if (wide.domain == Domain::Complex) return call.unsupported("strings do not convert to complex numbers");
  for (size_t i = 0; i < strings.size(); ++i) {
    if (Result parsed = parse_element(call, strings[i], wide); !parsed) return parsed.error();
    store_elements(wide, 1, **result, static_cast<int64_t>(i));
  }
  return one(*result);
}

} // namespace

Expected<Values> evaluate_convert(const OpCall& call) {
  const Literal& operand = call.tensor(0);
  if (operand.dtype() == call.result_dtype()) return one(call.literal(0));
  if (operand.dtype() == DType::String) return from_text(call);
  if (call.result_dtype() != DType::String) return evaluate_elementwise(call);
  if (is_complex(operand.dtype())) return call.unsupported("complex numbers do not convert to strings");
  std::vector<std::string> strings;
  for (int64_t i = 0; i < operand.num_elements(); ++i) strings.push_back(element_text(operand, i));
  return one(Literal::strings(operand.dims(), std::move(strings)));
}

} // namespace firn::evaluation
