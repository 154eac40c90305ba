// The reference bodies of quantize and dequantize: ops of ops.def that compute their results, bit for bit.
#pragma once

#include "compiler/graph/builder.h"

namespace firn {

// The result of a quantize or dequantize, by elementwise ops and movements that `builder` makes.
Value quantization_body(GraphBuilder& builder, const Instruction& quantization);

} // namespace firn
