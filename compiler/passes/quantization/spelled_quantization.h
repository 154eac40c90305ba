// Quantised values that are computed by plain instructions, as exporters decompose them; centred ones also as
// lower-quantization leaves them:
//
//   centred      convert(x) - zero_point : i32, or the same converted to f32
//   quantised    convert(clamp(low, round(y) + zero_point, high)), where y is divided by its scale already
#pragma once

#include "compiler/passes/quantization/quantized_values.h"

namespace firn {

// Matches integers less their zero point in a value of i32, or of f32 that holds such integers. Products of
// integers without a scale have such operands.
std::optional<Centered> centered(Value value);
// Matches such integers in f32, or their product with a scale, which has the value's dims, too.
std::optional<Dequantized> spelled_dequantized(Value value);
// Matches the quantisation of a y that is divided by its scale already: the scale is one.
std::optional<Quantized> spelled_quantized(const Instruction& convert);

} // namespace firn
