// Steps of quantised arithmetic that importers share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// round(x / scale) + zero point, half to even, bounded to the dtype's range. The scale is a scalar of x's
// dtype, the zero point one of `dtype`, or null.
Value quantize(NodeContext& node, Value x, Value scale, Value zero_point, DType dtype);
// The quantisation of what is divided by its scale already. The zero point is null or broadcasts to it.
Value quantize_scaled(NodeContext& node, Value scaled, Value zero_point, DType dtype);
// (x - zero point) * scale. The scale is a scalar of f32, the zero point one of x's dtype, or null.
Value dequantize(NodeContext& node, Value x, Value scale, Value zero_point);
// x as i32, or f32 if it holds floats, minus the zero point, whose shape broadcasts to x.
Value centered(NodeContext& node, Value x, Value zero_point);
// Scales and zero points of the factors of a matrix product a * b: one element, one per row of a or column
// of b, or of the factor's rank with 1 for the dim that is summed over. In a shape that broadcasts to the
// factor,
Value by_row(NodeContext& node, Value parameter, Value a);
Value by_column(NodeContext& node, Value parameter, Value b);
// or to the product. Null without the parameter, or after a failure.
Value by_product_row(NodeContext& node, Value parameter, Value a, Value b);
Value by_product_column(NodeContext& node, Value parameter, Value a, Value b);
// Sums of products of integers less their zero points, which may be null.
Value centered_product(NodeContext& node, Value a, Value a_zero, Value b, Value b_zero);
// x with each element along the axis repeated `count` times, cut to `extent` in all.
Value repeated(NodeContext& node, Value x, int axis, int64_t count, int64_t extent);
// Sums of products of integers times their scales, which are one or one per row and per column, and a bias:
// zero points and the bias may be null.
Value scaled_product(NodeContext& node, Value a, Value a_scale, Value a_zero, Value b, Value b_scale,
                     Value b_zero, Value bias);
// QuantizeLinear and DequantizeLinear.
void import_quantize(NodeContext& node);
void import_dequantize(NodeContext& node);
// The outputs of DynamicQuantizeLinear: u8 data, an f32 scale and a zero point.
struct DynamicQuantization {
  Value x, scale, zero_point;
};
DynamicQuantization quantize_dynamically(NodeContext& node, Value x);

} // namespace firn::onnx
