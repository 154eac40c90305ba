// Functions of quantised values in integers, by the rules of plan/fixed_point_functions.h.
#pragma once

#include "compiler/passes/quantization/integer_terms.h"

namespace firn {

// The integers that stand for a function of one byte, or for the softmax of bytes along a dim, times a
// factor. Nothing for other values, and where integers are not exact enough.
std::optional<IntegerTerm> function_in_integers(GraphBuilder& builder, Value value);

// A norm of bytes before its scale and bias, which are values of f32 that stand along dims of the result: the
// first of them at dim `parameter_dim`.
struct IntegerNorm {
  IntegerTerm term;
  Value scale, bias; // bias: null if there is none
  int64_t parameter_dim = 0;
};
std::optional<IntegerNorm> norm_in_integers(GraphBuilder& builder, Value value);

} // namespace firn
