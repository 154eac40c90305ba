// Values of f32 as sums of integers times constants: what is rounded to bytes without hardware for floats.
#pragma once

#include "compiler/passes/quantization/quantized_values.h"

#include <optional>
#include <vector>

namespace firn {

using Numbers = std::vector<double>; // one, or one for each element of the constants

// The numbers of as many channels.
Numbers spread(Numbers of, size_t channels);

// The integers of a tensor, of at most 32 bits and not u32, times a factor.
struct IntegerTerm {
  Value integers;
  Numbers factors;
  double max = 0;                 // an upper bound of the integers' magnitudes; infinite: unknown
  double error = 0, relative = 0; // how far they are from what they stand for, and what part of them
};

struct IntegerSum {
  std::vector<IntegerTerm> terms;
  Numbers biases = {0};
  // All constants but single numbers have the dims of this one, which are `dims` of the value's.
  Value channels;
  std::vector<int64_t> dims;
  size_t num_channels() const; // how many different factors or biases there are
};

enum class TermsOf {
  Integers,  // integers and constants alone
  Functions, // functions of bytes too, which are computed in integers, and products of two values
};

// Reads value * factor; nothing if it is no such sum, or one of many terms.
std::optional<IntegerSum> read_integer_sum(GraphBuilder& builder, Value value, double factor, TermsOf what);

// The integers that a value of f32 dequantises with one scale, moved as the floats may be behind it.
struct DequantizedIntegers {
  Value integers;
  Quantization by;
};
std::optional<DequantizedIntegers> dequantized_integers(GraphBuilder& builder, Value value);

// An upper bound of the magnitudes in an integer value; infinite if nothing is known.
double max_magnitude(Value integers);
// The number of elements of operand 0 that each result sums; infinite if it is unknown or this is no sum.
double summed_elements(const Instruction& sum);

} // namespace firn
