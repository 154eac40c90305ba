// Operators on regions of images.
#pragma once

#include <cstdint>

namespace firn::onnx {

class NodeContext;

// Whether input 0 is an image with pixels, at most so many along each of its dims 2 and 3; fails if not.
bool check_image(NodeContext& node, int64_t max = INT64_MAX);

void import_crop_and_resize(NodeContext& node);
void import_max_roi_pool(NodeContext& node);
void import_roi_align(NodeContext& node);
void import_non_max_suppression(NodeContext& node);

} // namespace firn::onnx
