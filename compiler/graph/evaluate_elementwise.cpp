// Elementwise ops: the meaning of every unary, binary and ternary op on one element, in f64, i64 or complex
// f64, and their application to whole tensors in chunks.
#include "compiler/graph/computed_indices.h"
#include "compiler/graph/evaluate_wide_elements.h"

#include <bit>
#include <cmath>
#include <limits>

namespace firn::evaluation {

namespace {

using Complex = std::complex<double>;
using Direction = ElementOp::Direction;

template <class R, class T, class F>
bool map(std::vector<R>& out, int64_t count, const std::vector<T>& a, F f) {
  for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = f(a[static_cast<size_t>(i)]);
  return true;
}
template <class R, class T, class F>
bool map(std::vector<R>& out, int64_t count, const std::vector<T>& a, const std::vector<T>& b, F f) {
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] = f(a[static_cast<size_t>(i)], b[static_cast<size_t>(i)]);
  return true;
}

double sign(double x) {
  return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}

bool unary_real(const ElementOp& op, const std::vector<double>& a, int64_t n, WideElements& out) {
  std::vector<double>& r = out.real;
  switch (op.opcode) {
  case Opcode::Abs: return map(r, n, a, [](double x) { return std::fabs(x); });
  case Opcode::Acos: return map(r, n, a, [](double x) { return std::acos(x); });
  case Opcode::Acosh: return map(r, n, a, [](double x) { return std::acosh(x); });
  case Opcode::Asin: return map(r, n, a, [](double x) { return std::asin(x); });
  case Opcode::Asinh: return map(r, n, a, [](double x) { return std::asinh(x); });
  case Opcode::Atan: return map(r, n, a, [](double x) { return std::atan(x); });
  case Opcode::Atanh: return map(r, n, a, [](double x) { return std::atanh(x); });
  case Opcode::Ceil: return map(r, n, a, [](double x) { return std::ceil(x); });
  case Opcode::Cosh: return map(r, n, a, [](double x) { return std::cosh(x); });
  case Opcode::Cosine: return map(r, n, a, [](double x) { return std::cos(x); });
  case Opcode::Erf: return map(r, n, a, [](double x) { return std::erf(x); });
  case Opcode::Exponential: return map(r, n, a, [](double x) { return std::exp(x); });
  case Opcode::ExponentialMinusOne: return map(r, n, a, [](double x) { return std::expm1(x); });
  case Opcode::Floor: return map(r, n, a, [](double x) { return std::floor(x); });
  case Opcode::IsInf: return map(out.integer, n, a, [](double x) { return int64_t{std::isinf(x)}; });
  case Opcode::IsNaN: return map(out.integer, n, a, [](double x) { return int64_t{std::isnan(x)}; });
  case Opcode::Log: return map(r, n, a, [](double x) { return std::log(x); });
  case Opcode::LogPlusOne: return map(r, n, a, [](double x) { return std::log1p(x); });
  case Opcode::Logistic: return map(r, n, a, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
  case Opcode::Negate: return map(r, n, a, [](double x) { return -x; });
  case Opcode::RoundNearestEven: return map(r, n, a, [](double x) { return std::nearbyint(x); });
  case Opcode::Rsqrt: return map(r, n, a, [](double x) { return 1.0 / std::sqrt(x); });
  case Opcode::Sign: return map(r, n, a, sign);
  case Opcode::Sine: return map(r, n, a, [](double x) { return std::sin(x); });
  case Opcode::Sinh: return map(r, n, a, [](double x) { return std::sinh(x); });
  case Opcode::Sqrt: return map(r, n, a, [](double x) { return std::sqrt(x); });
  case Opcode::StopGradient: return map(r, n, a, [](double x) { return x; });
  case Opcode::Tan: return map(r, n, a, [](double x) { return std::tan(x); });
  case Opcode::Tanh: return map(r, n, a, [](double x) { return std::tanh(x); });
  default: return false;
  }
}

int64_t negate(int64_t x) {
  return static_cast<int64_t>(0 - static_cast<uint64_t>(x));
}

bool unary_integer(const ElementOp& op, const std::vector<int64_t>& a, int64_t n, WideElements& out) {
  std::vector<int64_t>& r = out.integer;
  bool signedness = is_signed(op.operand);
  int width = op.operand == DType::Bool ? 1 : bit_width(op.operand);
  uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  switch (op.opcode) {
  case Opcode::Abs: return map(r, n, a, [=](int64_t x) { return signedness && x < 0 ? negate(x) : x; });
  case Opcode::Negate: return map(r, n, a, negate);
  case Opcode::Sign:
    return map(r, n, a, [=](int64_t x) {
      return x == 0 ? int64_t{0} : signedness && x < 0 ? int64_t{-1} : int64_t{1};
    });
  case Opcode::Not:
    if (op.operand == DType::Bool) return map(r, n, a, [](int64_t x) { return int64_t{x == 0}; });
    return map(r, n, a, [](int64_t x) { return ~x; });
  case Opcode::CountOnes:
    return map(r, n, a, [=](int64_t x) { return int64_t{std::popcount(static_cast<uint64_t>(x) & mask)}; });
  case Opcode::Ceil:
  case Opcode::Floor:
  case Opcode::RoundNearestEven:
  case Opcode::StopGradient: return map(r, n, a, [](int64_t x) { return x; });
  case Opcode::IsInf:
  case Opcode::IsNaN: return map(r, n, a, [](int64_t) { return int64_t{0}; });
  default: return false;
  }
}

bool unary_complex(const ElementOp& op, const std::vector<Complex>& a, int64_t n, WideElements& out) {
  std::vector<Complex>& r = out.complex;
  switch (op.opcode) {
  case Opcode::Abs:
    if (out.domain != Domain::Real) return false;
    return map(out.real, n, a, [](Complex x) { return std::abs(x); });
  case Opcode::Cosine: return map(r, n, a, [](Complex x) { return std::cos(x); });
  case Opcode::Exponential: return map(r, n, a, [](Complex x) { return std::exp(x); });
  case Opcode::Log: return map(r, n, a, [](Complex x) { return std::log(x); });
  case Opcode::Negate: return map(r, n, a, [](Complex x) { return -x; });
  case Opcode::Sine: return map(r, n, a, [](Complex x) { return std::sin(x); });
  case Opcode::Sqrt: return map(r, n, a, [](Complex x) { return std::sqrt(x); });
  case Opcode::StopGradient: return map(r, n, a, [](Complex x) { return x; });
  case Opcode::Tanh: return map(r, n, a, [](Complex x) { return std::tanh(x); });
  default: return false;
  }
}

bool binary_real(Opcode opcode, const std::vector<double>& a, const std::vector<double>& b, int64_t n,
                 std::vector<double>& r) {
  switch (opcode) {
  case Opcode::Add: return map(r, n, a, b, [](double x, double y) { return x + y; });
  case Opcode::Atan2: return map(r, n, a, b, [](double x, double y) { return std::atan2(x, y); });
  case Opcode::Divide: return map(r, n, a, b, [](double x, double y) { return x / y; });
  case Opcode::Maximum: return map(r, n, a, b, ieee_maximum);
  case Opcode::Minimum: return map(r, n, a, b, ieee_minimum);
  case Opcode::Multiply: return map(r, n, a, b, [](double x, double y) { return x * y; });
  case Opcode::Power: return map(r, n, a, b, [](double x, double y) { return std::pow(x, y); });
  case Opcode::Remainder: return map(r, n, a, b, [](double x, double y) { return std::fmod(x, y); });
  case Opcode::Subtract: return map(r, n, a, b, [](double x, double y) { return x - y; });
  default: return false;
  }
}

// Division by zero gives all bits set, its remainder the dividend; the smallest integer over -1 wraps to
// itself.
int64_t divide(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (is_unsigned(dtype)) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? negate(a) : a / b;
}
int64_t remainder(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return a;
  if (is_unsigned(dtype)) return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  return b == -1 ? 0 : a % b;
}

int64_t multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// A negative exponent gives the truncated reciprocal: 0 unless the base is 1 or -1 (0 too, where none
// exists).
int64_t power(DType dtype, int64_t base, int64_t exponent) {
  if (!is_unsigned(dtype) && exponent < 0) {
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  int64_t result = 1;
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
    if (left & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

// Amounts outside [0, width) shift everything out.
int64_t shift_left(DType dtype, int64_t a, int64_t amount) {
  return static_cast<uint64_t>(amount) < static_cast<uint64_t>(bit_width(dtype))
             ? static_cast<int64_t>(static_cast<uint64_t>(a) << amount)
             : 0;
}
int64_t shift_right(DType dtype, int64_t a, int64_t amount) {
  bool inside = static_cast<uint64_t>(amount) < static_cast<uint64_t>(bit_width(dtype));
  if (is_signed(dtype)) return a >> (inside ? amount : 63);
  return inside ? static_cast<int64_t>(static_cast<uint64_t>(a) >> amount) : 0;
}

bool binary_integer(const ElementOp& op, const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                    int64_t n, std::vector<int64_t>& r) {
  DType dtype = op.operand;
  bool boolean = dtype == DType::Bool;
  auto run = [&](auto f) { return map(r, n, a, b, f); };
  switch (op.opcode) {
  case Opcode::Add:
    return run([](int64_t x, int64_t y) {
      return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
    });
  case Opcode::Subtract:
    return run([](int64_t x, int64_t y) {
      return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
    });
  case Opcode::Multiply: return run(multiply);
  case Opcode::And: return run([](int64_t x, int64_t y) { return x & y; });
  case Opcode::Or: return run([](int64_t x, int64_t y) { return x | y; });
  case Opcode::Xor: return run([](int64_t x, int64_t y) { return x ^ y; });
  case Opcode::Maximum: return run([=](int64_t x, int64_t y) { return less(dtype, x, y) ? y : x; });
  case Opcode::Minimum: return run([=](int64_t x, int64_t y) { return less(dtype, y, x) ? y : x; });
  default: break;
  }
  if (boolean) return false;
  switch (op.opcode) {
  case Opcode::Divide: return run([=](int64_t x, int64_t y) { return divide(dtype, x, y); });
  case Opcode::Remainder: return run([=](int64_t x, int64_t y) { return remainder(dtype, x, y); });
  case Opcode::Power: return run([=](int64_t x, int64_t y) { return power(dtype, x, y); });
  case Opcode::ShiftLeft: return run([=](int64_t x, int64_t y) { return shift_left(dtype, x, y); });
  case Opcode::ShiftRight: return run([=](int64_t x, int64_t y) { return shift_right(dtype, x, y); });
  default: return false;
  }
}

bool binary_complex(Opcode opcode, const std::vector<Complex>& a, const std::vector<Complex>& b, int64_t n,
                    std::vector<Complex>& r) {
  switch (opcode) {
  case Opcode::Add: return map(r, n, a, b, [](Complex x, Complex y) { return x + y; });
  case Opcode::Subtract: return map(r, n, a, b, [](Complex x, Complex y) { return x - y; });
  case Opcode::Multiply: return map(r, n, a, b, [](Complex x, Complex y) { return x * y; });
  case Opcode::Divide: return map(r, n, a, b, [](Complex x, Complex y) { return x / y; });
  case Opcode::Power: return map(r, n, a, b, [](Complex x, Complex y) { return std::pow(x, y); });
  default: return false;
  }
}

template <class T, class Less>
bool compare_ordered(Direction direction, const std::vector<T>& a, const std::vector<T>& b, int64_t n,
                     std::vector<int64_t>& r, Less before) {
  switch (direction) {
  case Direction::Eq: return map(r, n, a, b, [](T x, T y) { return int64_t{x == y}; });
  case Direction::Ne: return map(r, n, a, b, [](T x, T y) { return int64_t{x != y}; });
  case Direction::Lt: return map(r, n, a, b, [=](T x, T y) { return int64_t{before(x, y)}; });
  case Direction::Gt: return map(r, n, a, b, [=](T x, T y) { return int64_t{before(y, x)}; });
  case Direction::Le: return map(r, n, a, b, [=](T x, T y) { return int64_t{before(x, y) || x == y}; });
  case Direction::Ge: return map(r, n, a, b, [=](T x, T y) { return int64_t{before(y, x) || x == y}; });
  }
  return false;
}

bool compare(const ElementOp& op, const WideElements& a, const WideElements& b, int64_t n,
             std::vector<int64_t>& r) {
  DType dtype = op.operand;
  switch (a.domain) {
  case Domain::Real:
    return compare_ordered(op.direction, a.real, b.real, n, r, [](double x, double y) { return x < y; });
  case Domain::Integer:
    return compare_ordered(op.direction, a.integer, b.integer, n, r,
                           [=](int64_t x, int64_t y) { return less(dtype, x, y); });
  case Domain::Complex:
    if (op.direction == Direction::Eq)
      return map(r, n, a.complex, b.complex, [](Complex x, Complex y) { return int64_t{x == y}; });
    if (op.direction == Direction::Ne)
      return map(r, n, a.complex, b.complex, [](Complex x, Complex y) { return int64_t{x != y}; });
    return false;
  case Domain::Text: return false;
  }
  return false;
}

bool clamp(const ElementOp& op, const WideElements& low, const WideElements& x, const WideElements& high,
           int64_t n, WideElements& out) {
  ElementOp maximum = op, minimum = op;
  maximum.opcode = Opcode::Maximum;
  minimum.opcode = Opcode::Minimum;
  WideElements raised;
  const WideElements* first[] = {&x, &low};
  if (!apply(maximum, first, n, raised)) return false;
  const WideElements* second[] = {&raised, &high};
  return apply(minimum, second, n, out);
}

// Numbers of f32 and narrower have exact products in f64, but a sum that is rounded twice would not be the
// nearest.
bool multiply_add(DType dtype, const WideElements& lhs, const WideElements& rhs, const WideElements& addend,
                  int64_t n, std::vector<double>& out) {
  if (lhs.domain != Domain::Real) return false;
  auto at = [&](size_t i) {
    double x = lhs.real[i], y = rhs.real[i], z = addend.real[i];
    if (dtype == DType::F64) return std::fma(x, y, z);
    return static_cast<double>(
        std::fmaf(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
  };
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) out[i] = at(i);
  return true;
}

bool select(const WideElements& condition, const WideElements& on_true, const WideElements& on_false,
            int64_t n, WideElements& out) {
  for (int64_t i = 0; i < n; ++i)
    out.copy_element(i, condition.integer[static_cast<size_t>(i)] ? on_true : on_false, i);
  return true;
}

void narrow(const ElementOp& op, const std::vector<double>& in, int64_t n, std::vector<int64_t>& out) {
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const double number = std::nearbyint(in[i]) + op.zero;
    out[i] = static_cast<int64_t>(std::isnan(number) ? op.low : std::clamp(number, op.low, op.high));
  }
}

bool compute(const ElementOp& op, const WideElements* const* operands, int64_t n, WideElements& out) {
  const WideElements& a = *operands[0];
  switch (op_info(op.opcode).op_class) {
  case OpClass::Unary:
    if (a.domain == Domain::Real) return unary_real(op, a.real, n, out);
    return a.domain == Domain::Integer ? unary_integer(op, a.integer, n, out)
                                       : unary_complex(op, a.complex, n, out);
  case OpClass::Binary: {
    const WideElements& b = *operands[1];
    if (a.domain != b.domain) return false;
    if (op.opcode == Opcode::Compare) return compare(op, a, b, n, out.integer);
    if (a.domain == Domain::Real) return binary_real(op.opcode, a.real, b.real, n, out.real);
    if (a.domain == Domain::Integer) return binary_integer(op, a.integer, b.integer, n, out.integer);
    return binary_complex(op.opcode, a.complex, b.complex, n, out.complex);
  }
  case OpClass::Ternary:
    if (op.opcode == Opcode::Clamp) return clamp(op, a, *operands[1], *operands[2], n, out);
    if (op.opcode == Opcode::MultiplyAdd)
      return multiply_add(op.operand, a, *operands[1], *operands[2], n, out.real);
    if (a.domain != Domain::Integer || operands[1]->domain != operands[2]->domain) return false;
    return select(a, *operands[1], *operands[2], n, out);
  default: return false;
  }
}

void round_elements(DType dtype, int64_t n, WideElements& wide) {
  auto each = [n](auto& values, auto f) {
    for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = f(values[static_cast<size_t>(i)]);
  };
  if (wide.domain == Domain::Real && dtype == DType::F32)
    each(wide.real, [](double x) { return static_cast<double>(static_cast<float>(x)); });
  else if (wide.domain == Domain::Real && dtype != DType::F64)
    each(wide.real, [=](double x) { return round_real(dtype, x); });
  else if (wide.domain == Domain::Integer && bit_width(dtype) != 64)
    each(wide.integer, [=](int64_t x) { return wrap_integer(dtype, x); });
  else if (dtype == DType::C64)
    each(wide.complex, [](Complex x) { return Complex(std::complex<float>(x)); });
}

} // namespace

ElementOp element_op(const Instruction& instruction) {
  ElementOp op;
  op.opcode = instruction.opcode();
  op.operand = instruction.operands().back().dtype();
  op.result = instruction.type().dtype;
  if (op.opcode == Opcode::Convert) op.saturate = instruction.attributes().flag("saturate");
  if (op.opcode == Opcode::Narrow) {
    auto number = [&](const char* name) {
      return static_cast<double>(instruction.attributes().integer(name, 0));
    };
    op.low = number("low"), op.high = number("high"), op.zero = number("zero");
  }
  if (op.opcode == Opcode::Compare) {
    const std::string& word = instruction.word("direction");
    op.direction = word == "eq"   ? Direction::Eq
                   : word == "ne" ? Direction::Ne
                   : word == "lt" ? Direction::Lt
                   : word == "le" ? Direction::Le
                   : word == "gt" ? Direction::Gt
                                  : Direction::Ge;
  }
  return op;
}

bool apply(const ElementOp& op, const WideElements* const* operands, int64_t count, WideElements& out) {
  out.domain = domain_of(op.result);
  if (out.domain == Domain::Text || operands[0]->domain == Domain::Text) return false;
  out.resize(count);
  if (op.opcode == Opcode::Convert) {
    convert_elements(op, *operands[0], count, out);
    return true;
  }
  if (op.opcode == Opcode::Narrow) {
    narrow(op, operands[0]->real, count, out.integer);
    return true;
  }
  if (!compute(op, operands, count, out)) return false;
  round_elements(op.result, count, out);
  return true;
}

namespace {

// Strings can be compared and selected.
Expected<Values> evaluate_strings(const OpCall& call) {
  ElementOp op = element_op(call.instruction());
  const Literal& last = call.tensor(call.num_operands() - 1);
  auto count = static_cast<size_t>(last.num_elements());
  if (op.opcode == Opcode::Compare) {
    const auto &a = call.tensor(0).string_values(), &b = last.string_values();
    std::vector<int64_t> result(count);
    compare_ordered<std::string>(op.direction, a, b, last.num_elements(), result,
                                 [](const std::string& x, const std::string& y) { return x < y; });
    return one(Literal::of(DType::Bool, last.dims(), result));
  }
  if (op.opcode != Opcode::Select)
    return call.unsupported("strings can only be compared, selected and moved");
  std::vector<std::string> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = call.tensor(call.tensor(0).get_int(static_cast<int64_t>(i)) ? 1 : 2).string_values()[i];
  return one(Literal::strings(last.dims(), std::move(result)));
}

} // namespace

Expected<Values> evaluate_elementwise(const OpCall& call) {
  for (int i = 1; i < call.num_operands(); ++i)
    if (call.tensor(i).dims() != call.tensor(0).dims())
      return call.fail("operands must have one shape, they are " + describe(call.tensor(0)) + " and " +
                       describe(call.tensor(i)));
  if (call.tensor(call.num_operands() - 1).dtype() == DType::String) return evaluate_strings(call);
  if (is_checked_clamp(call.instruction())) {
    int64_t low = call.tensor(0).get_int(0), x = call.tensor(1).get_int(0), high = call.tensor(2).get_int(0);
    if ((x < low || x > high) && call.instruction().attributes().flag("branch"))
      return call.fail("the run came to a branch that does not fit the shapes");
    if (x < low || x > high)
      return call.fail(std::to_string(x) + " is not within " + std::to_string(low) + " and " +
                       std::to_string(high));
  }
  ElementOp op = element_op(call.instruction());
  auto result = call.allocate(op.result, call.tensor(0).dims());
  if (!result) return result.error();
  constexpr int64_t chunk = 2048;
  WideElements wide[3], out;
  const WideElements* operands[] = {&wide[0], &wide[1], &wide[2]};
  int64_t total = (*result)->num_elements();
  for (int64_t start = 0; start < total; start += chunk) {
    int64_t count = std::min(chunk, total - start);
    for (int i = 0; i < call.num_operands(); ++i) load_elements(call.tensor(i), start, count, wide[i]);
    if (!apply(op, operands, count, out))
      return call.unsupported("has no meaning for " + std::string(dtype_name(op.operand)));
    store_elements(out, count, **result, start);
  }
  return one(*result);
}

} // namespace firn::evaluation
