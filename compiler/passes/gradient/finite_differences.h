// Gradients against central differences, both by the evaluator.
#pragma once

#include "compiler/graph/evaluate.h"

#include <random>

namespace firn::gradient {

// The derivative of <seed, result> along one direction of the inputs.
struct DirectionalDerivative {
  double by_gradient = 0, by_differences = 0;
  double scale = 1; // 1 + the sum of the terms' magnitudes

  double error() const; // |difference| / scale; infinite if either is not a number
};

// A function, the seedable gradient that was declared of it, and the inputs at which they are compared.
struct ComparedGradient {
  const Function& primal;
  const Function& gradient;
  int from;
  std::vector<int> wrt;
  std::vector<LiteralRef> inputs; // the primal function's
  double step = 0x1p-10;          // differences of half the step extrapolate these
};

// Draws a seed for the result and a direction for each input of `wrt`. Inputs want to be f64, of a magnitude
// about 1.
Expected<DirectionalDerivative> compare_along(const ComparedGradient& compared, std::mt19937_64& random);
// Compares along one element of the input `wrt[which]` alone; -1: along a direction of all of its elements.
Expected<DirectionalDerivative> compare_element(const ComparedGradient& compared, size_t which,
                                                int64_t element, std::mt19937_64& random);

// A tensor of floats, uniform in [low, high).
LiteralRef random_floats(DType dtype, std::vector<int64_t> dims, double low, double high,
                         std::mt19937_64& random);

} // namespace firn::gradient
