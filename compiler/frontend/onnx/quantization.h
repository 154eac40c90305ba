// Steps of quantised arithmetic that importers share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// round(scaled) + zero point, half to even, bounded to the dtype's range. `scaled` is f32 or f64; the zero
// point is a scalar or broadcasts to it, or is null.
Value to_integer(NodeContext& node, Value scaled, Value zero_point, DType dtype);
// x as i32 (f32 where it holds floats) with the zero point, of a shape that broadcasts to x, subtracted.
Value centered(NodeContext& node, Value x, Value zero_point);
// A parameter of a matrix's rows as a column; scalars and full shapes as they are.
Value by_row(NodeContext& node, Value parameter, Value x);
// Sums of products of integers times their scales, which are one or one per row and per column, and a bias:
// zero points and the bias may be null.
Value scaled_product(NodeContext& node, Value a, Value a_scale, Value a_zero, Value b, Value b_scale,
                     Value b_zero, Value bias);
// QuantizeLinear and DequantizeLinear.
void import_quantize(NodeContext& node);
void import_dequantize(NodeContext& node);
// What DynamicQuantizeLinear gives: u8, its f32 scale and its zero point.
struct DynamicQuantization {
  Value x, scale, zero_point;
};
DynamicQuantization quantize_dynamically(NodeContext& node, Value x);

} // namespace firn::onnx
