// Pooling by an operator's attributes: kernel_shape, strides, pads and the like.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// The largest element, or the mean, under each window of x [N,C,...]. Null after a failure.
Value max_pool(NodeContext& node, Value x);
Value average_pool(NodeContext& node, Value x);

} // namespace firn::onnx
