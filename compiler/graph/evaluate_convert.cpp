// Convert: between numbers of every dtype, and between numbers and their decimal text.
#include "compiler/graph/evaluate_wide_elements.h"
#include "compiler/graph/integer_text.h"
#include "compiler/support/letter_case.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
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

// The shortest decimal that reads back as the same float, zeros behind its digits: 0.1, 20.0, 1e-05.
template <class F> std::string shortest_decimal(F x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  size_t e = text.find('e');
  int power = std::stoi(text.substr(e + 1));
  if (power < -4 || power >= 16) return text;
  std::string sign = text[0] == '-' ? "-" : "", digits = text.substr(sign.size(), e - sign.size());
  std::erase(digits, '.');
  if (power < 0) digits.insert(0, static_cast<size_t>(-power), '0');
  auto point = static_cast<size_t>(std::max(power, 0)) + 1;
  digits.resize(std::max(digits.size(), point + 1), '0');
  return sign + digits.insert(point, ".");
}

std::string element_text(const Literal& literal, int64_t index) {
  DType dtype = literal.dtype();
  if (dtype == DType::F64) return shortest_decimal(literal.get_double(index));
  if (is_float(dtype)) return shortest_decimal(static_cast<float>(literal.get_double(index)));
  return integer_text(literal, index);
}

// A decimal number, or "inf", "infinity" and "nan" in any case, without the blanks around it; nothing for
// what is none.
std::optional<std::string> number_in(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  size_t first = text.find_first_not_of(kBlanks), last = text.find_last_not_of(kBlanks);
  if (first == text.npos) return std::nullopt;
  std::string number = text.substr(first, last - first + 1);
  std::string word = in_case(number, /*upper=*/false);
  if (word[0] == '+' || word[0] == '-') word.erase(0, 1);
  if (word == "inf" || word == "infinity" || word == "nan") return number;
  char* end = nullptr;
  (void)std::strtod(number.c_str(), &end);
  bool decimal = number.find_first_not_of("0123456789+-.eE") == number.npos; // C takes others
  return decimal && end == number.c_str() + number.size() ? std::optional(number) : std::nullopt;
}

// Rounded towards zero, by moving the point; up to 2^64 - 1, which wraps. Nothing beyond.
std::optional<int64_t> integer_of(const std::string& number) {
  bool negative = number[0] == '-';
  size_t start = number.find_first_not_of("+-"), power = number.find_first_of("eE");
  if (std::isalpha(static_cast<unsigned char>(number[start]))) return std::nullopt;
  std::string digits = number.substr(start, power == number.npos ? number.npos : power - start);
  long tens = power == number.npos ? 0 : std::strtol(number.c_str() + power + 1, nullptr, 10);
  size_t point = std::min(digits.find('.'), digits.size());
  if (point < digits.size()) digits.erase(point, 1);
  size_t first = digits.find_first_not_of('0');
  if (first == digits.npos) return 0;
  constexpr long far = 1 << 24;
  long places = static_cast<long>(point) - static_cast<long>(first) + std::clamp(tens, -far, far);
  if (places > 20) return std::nullopt;
  digits = digits.substr(first);
  digits.resize(static_cast<size_t>(std::max(places, 0L)), '0');
  errno = 0;
  uint64_t value = digits.empty() ? 0 : std::strtoull(digits.c_str(), nullptr, 10);
  if (errno || (negative && value > uint64_t{1} << 63)) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - value : value);
}

Result parse_element(const OpCall& call, const std::string& text, WideElements& wide) {
  DType dtype = call.result_dtype();
  bool is_real = wide.domain == Domain::Real;
  auto number = number_in(text);
  auto integer = number && !is_real ? integer_of(*number) : std::nullopt;
  if (!number || (!is_real && !integer))
    return call.fail("string \"" + text.substr(0, 40) + "\" is not a number");
  if (integer)
    wide.integer[0] = wrap_integer(dtype, *integer);
  else if (dtype == DType::F32)
    wide.real[0] = static_cast<double>(std::strtof(number->c_str(), nullptr));
  else
    wide.real[0] = round_real(dtype, std::strtod(number->c_str(), nullptr), call.flag("saturate"));
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
