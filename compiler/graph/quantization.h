// The reference bodies of quantize and dequantize, ops of ops.def that compute their results,
// bit for bit, and their scales and zero points for each element.
#pragma once

#include "compiler/graph/builder.h"

namespace firn {

struct IntegerBounds {
  int64_t low = 0, high = 0;
};
// The least and the largest number of an integer type of at most 32 bits.
IntegerBounds integer_bounds(DType dtype);

// Whether it is a constant scalar one, whatever the weights of the model become.
bool is_unit_scale(Value scale);

// The scale or zero point of each element of x, in another dtype, where `attributes` are those of the op.
Value spread_parameter(GraphBuilder& builder, Value parameter, const Type& x, const Attributes& attributes,
                       DType dtype);

// The result of a quantize or dequantize, by elementwise ops and movements that `builder` makes.
Value quantization_body(GraphBuilder& builder, const Instruction& quantization);
// The floats that a quantize rounds: x divided by its scale, in f32 unless x is f64.
Value divided_by_scale(GraphBuilder& builder, const Instruction& quantize);
// The integers of a quantize, clamped to bounds within their type.
Value bounded_quantize_body(GraphBuilder& builder, const Instruction& quantize, IntegerBounds bounds);

} // namespace firn
