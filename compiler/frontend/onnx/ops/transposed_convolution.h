// Transposed convolutions over spatial dims that vary: one convolution with the filters of all phases, whose
// results are then interleaved.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The transposed convolution of x, which stands for input 0, with filter w [C, M/g, k...]. `window`, over all
// spatial dims, has stride 1 over the dilated input.
Value convolution_by_phases(NodeContext& node, Value x, Value w, const Window& window, int64_t groups);

} // namespace firn::onnx
