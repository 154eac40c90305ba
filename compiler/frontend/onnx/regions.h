// Operators on regions of images.
#pragma once

namespace firn::onnx {

class NodeContext;

void import_crop_and_resize(NodeContext& node);
void import_max_roi_pool(NodeContext& node);
void import_roi_align(NodeContext& node);
void import_non_max_suppression(NodeContext& node);

} // namespace firn::onnx
