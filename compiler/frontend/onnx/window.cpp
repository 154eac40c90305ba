// Windows from ONNX attributes.
#include "compiler/frontend/onnx/window.h"

#include <algorithm>
#include <functional>

namespace firn::onnx {

namespace {

// Bound of every window number, so that sums of products of them stay far from overflow.
constexpr int64_t kMax = int64_t{1} << 31;

std::string list(const Ints& values) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

// An attribute of `size` numbers from `least` on; absent: all `fallback`.
std::optional<Ints> read(NodeContext& node, std::string_view name, size_t size, int64_t fallback,
                         int64_t least) {
  Ints values = node.ints_attribute(name);
  if (values.empty()) values.assign(size, fallback);
  std::string found = "attribute " + std::string(name) + " is " + list(values);
  if (!node.check(values.size() == size, found + ", wants " + std::to_string(size) + " numbers"))
    return std::nullopt;
  for (int64_t value : values)
    if (!node.check(value >= least && value < kMax,
                    found + ", wants numbers of " + std::to_string(least) + " or more"))
      return std::nullopt;
  return values;
}

// A strided window that reaches a little further than its input has one position, which no formula of an
// extent that varies gives.
bool may_exceed(NodeContext& node, const Dim& extent, Positions counted, int64_t stride,
                const std::function<int64_t(int64_t)>& room_for) {
  if (extent.is_static() || counted != Positions::Floor || stride == 1) return false;
  if (extent.extent.upper_bound() == INT64_MAX) return false; // asked again when its bounds are known
  int64_t least = std::max<int64_t>(extent.extent.lower_bound(), 0);
  if (room_for(least) >= 0 || (least == 0 && room_for(1) >= 0)) return false;
  node.fail_unsupported("extent " + extent.extent.to_string() + " may be " + std::to_string(least) +
                        ", which with its padding is smaller than the window; wants a range from " +
                        std::to_string(least - room_for(least)) + " on");
  return true;
}

} // namespace

std::optional<WindowAttributes> read_window(NodeContext& node, int rank, const Ints& kernel) {
  WindowAttributes window;
  size_t size = static_cast<size_t>(rank);
  if (!node.check(rank >= 1, "input has no spatial dims, wants rank 3 or more")) return std::nullopt;
  if (kernel.empty() && !node.has_attribute("kernel_shape")) {
    node.fail("attribute kernel_shape is missing");
    return std::nullopt;
  }
  // An empty list means the default for the others; a window without dims is none.
  if (node.has_attribute("kernel_shape") &&
      !node.check(!node.ints_attribute("kernel_shape").empty(),
                  "attribute kernel_shape is [], wants " + std::to_string(size) + " numbers"))
    return std::nullopt;
  auto shape = node.has_attribute("kernel_shape") ? read(node, "kernel_shape", size, 1, 1) : kernel;
  if (!shape) return std::nullopt;
  if (!kernel.empty() && !node.check(*shape == kernel, "attribute kernel_shape is " + list(*shape) +
                                                           ", the filter's is " + list(kernel)))
    return std::nullopt;
  auto strides = read(node, "strides", size, 1, 1), dilations = read(node, "dilations", size, 1, 1);
  std::string auto_pad =
      node.choice_attribute("auto_pad", "NOTSET", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  auto pads = read(node, "pads", 2 * size, 0, -kMax);
  if (!strides || !dilations || !pads || node.failed()) return std::nullopt;
  window.kernel = *shape;
  window.strides = *strides;
  window.dilations = *dilations;
  window.auto_pad = auto_pad == "SAME_UPPER"   ? AutoPad::SameUpper
                    : auto_pad == "SAME_LOWER" ? AutoPad::SameLower
                    : auto_pad == "VALID"      ? AutoPad::Valid
                                               : AutoPad::NotSet;
  if (window.auto_pad != AutoPad::NotSet) pads->assign(2 * size, 0);
  window.pads_low.assign(pads->begin(), pads->begin() + rank);
  window.pads_high.assign(pads->begin() + rank, pads->end());
  return window;
}

std::optional<Window> spatial_window(NodeContext& node, Value x, std::string_view what,
                                     const WindowAttributes& attributes, Positions counted) {
  Window window;
  for (size_t i = 0; i < attributes.kernel.size(); ++i) {
    WindowDim dim;
    dim.size = attributes.kernel[i];
    dim.stride = attributes.strides[i];
    dim.dilation = attributes.dilations[i];
    dim.pad_low = attributes.pads_low[i];
    dim.pad_high = attributes.pads_high[i];
    bool same = attributes.auto_pad == AutoPad::SameUpper || attributes.auto_pad == AutoPad::SameLower;
    int axis = static_cast<int>(i) + 2;
    const Dim& extent = x.type().dims[static_cast<size_t>(axis)];
    auto room_for = [&](int64_t in) { return in + dim.pad_low + dim.pad_high - dim.dilated_size(); };
    bool exceeds = extent.is_static() && extent.value() > 0 && room_for(extent.value()) < 0;
    if (!same && may_exceed(node, extent, counted, dim.stride, room_for)) return std::nullopt;
    if (same) {
      IntExpr positions = ceil_div(extent.extent, dim.stride);
      IntExpr all = max((positions - 1) * dim.stride + dim.dilated_size() - extent.extent, 0);
      if (!all.is_constant() && !node.static_dim(x, axis, what)) return std::nullopt;
      int64_t total = all.value();
      dim.pad_low = attributes.auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
      dim.pad_high = total - dim.pad_low;
    } else if (dim.stride != 1 && counted == Positions::Ceil && !extent.is_static() &&
               extent.extent.lower_bound() + dim.pad_low + dim.pad_high >= dim.dilated_size() &&
               dim.pad_high + dim.stride <= dim.dilated_size()) {
      dim.pad_high += dim.stride - 1; // and the last window still begins before the end
    } else if (dim.stride != 1 && (counted == Positions::Ceil || (counted == Positions::Floor && exceeds))) {
      auto in = node.static_dim(x, axis, what);
      if (!in) return std::nullopt;
      int64_t room = room_for(*in);
      int64_t rounding = counted == Positions::Ceil && room > 0 ? dim.stride - 1 : 0;
      int64_t positions = room <= -dim.stride ? 0 : (room + rounding) / dim.stride + 1;
      if (positions > 0 && (positions - 1) * dim.stride >= *in + dim.pad_low) --positions;
      if (positions > 0) {
        int64_t reached = (positions - 1) * dim.stride + dim.dilated_size() - *in - dim.pad_low;
        dim.pad_high = std::max(dim.pad_high, reached);
        // A dropped last window must not come back through the padding that was asked for.
        while (dim.output_size(*in) > positions) --dim.pad_high;
      }
    }
    int64_t least = counted == Positions::Whole ? 0 : 1 - 2 * dim.stride; // less makes the count negative
    if (extent.is_static() &&
        !node.check(extent.value() == 0 || room_for(extent.value()) >= least,
                    std::string(what) + " has extent " + std::to_string(extent.value()) + " along axis " +
                        std::to_string(axis) + ", with padding " + std::to_string(dim.pad_low) + " and " +
                        std::to_string(dim.pad_high) + " too small for a window of " +
                        std::to_string(dim.dilated_size())))
      return std::nullopt;
    window.dims.push_back(dim);
  }
  return window;
}

Window with_batch_and_channel(const Window& spatial) {
  Window window = spatial;
  window.dims.insert(window.dims.begin(), 2, WindowDim{});
  return window;
}

} // namespace firn::onnx
