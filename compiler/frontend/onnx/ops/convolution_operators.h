// The graph convolution of an ONNX convolution node, shared by Conv and its integer forms.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// Convolves values that stand for the inputs numbered `input` and `filter` (same dims, perhaps another dtype)
// by the node's window attributes and `group`. `result` is the dtype of the sums, by default x's. Null after
// a failure.
Value convolve(NodeContext& node, Value x, int input, Value w, int filter, std::optional<DType> result = {});
// A vector per channel as [C,1,...], so that it broadcasts to [N,C,...] of `rank` dims.
Value per_channel(NodeContext& node, Value vector, int rank);

// The convolution of a node with Conv's inputs and attributes, as its output.
void import_conv(NodeContext& node);

} // namespace firn::onnx
