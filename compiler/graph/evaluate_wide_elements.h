// Elements of any dtype widened to one of three domains, f64, i64 and complex f64, in which the evaluator
// computes. A wide element is always exactly representable in its dtype, except accumulators before rounding.
#pragma once

#include "compiler/graph/evaluate_call.h"

namespace firn::evaluation {

// u64 is its bit pattern as i64; narrower unsigned integers and bool (0, 1) are their value.
enum class Domain : uint8_t { Real, Integer, Complex, Text };
Domain domain_of(DType dtype);

struct WideElements {
  Domain domain = Domain::Real;
  std::vector<double> real;
  std::vector<int64_t> integer;
  std::vector<std::complex<double>> complex;

  WideElements() = default;
  WideElements(Domain domain, int64_t count) : domain(domain) { resize(count); }
  void resize(int64_t count);
  void copy_element(int64_t to, const WideElements& from, int64_t index);
};

// Elements [start, start + count) of a literal to the first wide ones and back; storing rounds to the dtype.
void load_elements(const Literal& literal, int64_t start, int64_t count, WideElements& wide);
void store_elements(const WideElements& wide, int64_t count, Literal& literal, int64_t start);
WideElements load_all(const Literal& literal);
void store_all(const WideElements& wide, Literal& literal);
template <class T> std::vector<T> load_as(const Literal& literal); // double, int64_t, complex<double>

// The value of `dtype` nearest to x, ties to even. Narrow floats overflow as float_to_float8 says.
double round_real(DType dtype, double x, bool saturate = false);
// x modulo 2^width, in the dtype's range; bool: x != 0.
int64_t wrap_integer(DType dtype, int64_t x);
// The float next to x towards zero, made odd unless exact: rounding it further equals rounding x.
float round_to_odd(double x);

// An elementwise op prepared for wide elements.
struct ElementOp {
  enum class Direction : uint8_t { Eq, Ne, Lt, Le, Gt, Ge };
  Opcode opcode = Opcode::Add;
  DType operand = DType::F32; // dtype of the values (not of Select's condition)
  DType result = DType::F32;
  Direction direction = Direction::Eq;
  bool saturate = false;
  double low = 0, high = 0, zero = 0; // a narrow's
};
ElementOp element_op(const Instruction& instruction);
// Element i of `out` from elements i of the operands, i < count; false if the op has no meaning for the
// dtypes.
[[nodiscard]] bool apply(const ElementOp& op, const WideElements* const* operands, int64_t count,
                         WideElements& out);
void convert_elements(const ElementOp& op, const WideElements& in, int64_t count, WideElements& out);

// Folds values[start + i * stride], i < count, into one element of `accumulator`, without rounding. False if
// `reducer` is not an associative op that has a meaning for the domain.
[[nodiscard]] bool fold(Opcode reducer, DType dtype, WideElements& accumulator, int64_t element,
                        const WideElements& values, int64_t start, int64_t count, int64_t stride = 1);

// maximum and minimum of IEEE 754-2019: NaN if either is NaN, -0 below +0.
double ieee_maximum(double a, double b);
double ieee_minimum(double a, double b);
bool less(DType dtype, int64_t a, int64_t b);

} // namespace firn::evaluation
