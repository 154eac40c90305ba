// The measure of error between a computed and an expected tensor.
#pragma once

#include "compiler/graph/literal.h"

#include <string>

namespace firn::driver {

// Largest |got - want| divided by the largest finite |want|, or not divided where every want is 0. NaN equals
// NaN; an infinity equals only itself, else the error is infinite. Integers, bools and strings: 0 if equal,
// else infinite. Tensors of another dtype or shape: infinite, with the difference in `why`.
double tensor_error(const Literal& got, const Literal& want, std::string& why);

// The unit of the last decimal of tensors that were stored rounded to two, three or four of them: 1e-4 for
// 0.2841. 0 for others, for those of few elements, and for whole numbers.
double stored_unit(const Literal& want);

// Whether two floating-point or Boolean tensors of one type and shape may be draws of one distribution: their
// means and mean squares lie within six standard errors of each other.
bool same_distribution(const Literal& got, const Literal& want);

// The tolerance for outputs of this dtype when none is given: 1e-5, f16 1e-2, bf16 5e-2.
double default_tolerance(DType dtype);

// The error of one output over some runs, against the same runs in more digits.
struct OutputError {
  std::string name, type;   // the type of the last run
  bool has_numbers = false; // floats or complex numbers, of which both parts count
  int64_t elements = 0;
  // Integers, Booleans and strings that differ, numbers of which only one is finite, and elements of tensors
  // of other shapes. The figures below are of the other numbers.
  int64_t unlike = 0;
  double largest = 0;          // |difference|
  double largest_expected = 0; // |value|
  double squares = 0, expected_squares = 0;

  void add(const Literal& got, const Literal& want);
  // The error as tensor_error() measures it; 0 for outputs without numbers.
  double relative() const;
  double rms() const;
  double expected_rms() const;
};

} // namespace firn::driver
