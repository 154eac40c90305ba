// Convolutions whose filters are values of a run with extents that vary: products with columns, which are
// gathered at the positions of the taps, or added up there.
#pragma once

#include "compiler/frontend/onnx/ops/window.h"

namespace firn::onnx {

// x [N,C,...] by filters w [M,C/g,k...] with the pads, strides and dilations of `attributes`; sums have dtype
// `result`, by default x's. A run whose filters are larger than x ends.
Value convolution_by_columns(NodeContext& node, Value x, Value w, const WindowAttributes& attributes,
                             int64_t groups, std::optional<DType> result);

// Adds up columns [N,C,k...,p...], one per position p of a window, at the positions of their taps: [N,C,...]
// of these extents, which begin where the pads of `attributes` end.
Value add_columns(NodeContext& node, Value columns, const WindowAttributes& attributes,
                  const std::vector<Dim>& image);

} // namespace firn::onnx
