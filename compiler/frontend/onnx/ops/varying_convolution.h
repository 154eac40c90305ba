// Convolutions whose filters are values of a run with extents that vary: products over columns, which are
// gathered from where the taps lie, or added up there.
#pragma once

#include "compiler/frontend/onnx/ops/window.h"

namespace firn::onnx {

// x [N,C,...] by filters w [M,C/g,k...] with the pads, strides and dilations of `attributes`; sums of
// `result`, or x's dtype. A run whose filters are larger than x ends.
Value convolution_by_columns(NodeContext& node, Value x, Value w, const WindowAttributes& attributes,
                             int64_t groups, std::optional<DType> result);

// Columns [N,C,k...,p...], one per place p of a window, added up where its taps lie: [N,C,...] of these
// extents, which begin where the pads of `attributes` end.
Value add_columns(NodeContext& node, Value columns, const WindowAttributes& attributes,
                  const std::vector<Dim>& image);

} // namespace firn::onnx
