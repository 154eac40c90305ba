// Windows from ONNX attributes.
#include "compiler/frontend/onnx/ops/window.h"
#include "compiler/support/int_expr_values.h"

#include <algorithm>

namespace firn::onnx {

namespace {

// Bound of every window number, so that sums of products of them stay far from overflow.
constexpr int64_t kMax = int64_t{1} << 31;

std::string list(const Ints& values) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

// An attribute of `size` numbers, none below `min`; if absent, all are `fallback`.
std::optional<Ints> read(NodeContext& node, std::string_view name, size_t size, int64_t fallback,
                         int64_t min) {
  Ints values = node.ints_attribute(name);
  if (values.empty()) values.assign(size, fallback);
  std::string found = "attribute " + std::string(name) + " is " + list(values);
  if (!node.check(values.size() == size, found + ", wants " + std::to_string(size) + " numbers"))
    return std::nullopt;
  for (int64_t value : values)
    if (!node.check(value >= min && value < kMax,
                    found + ", wants numbers of " + std::to_string(min) + " or more"))
      return std::nullopt;
  return values;
}

// The number of positions of a pool's strided window along a dim that varies. The window gets padding for at
// least these; nothing if it then has exactly these.
std::optional<IntExpr> varying_positions(WindowDim& dim, const IntExpr& extent, Positions counted) {
  int64_t size = dim.dilated_size(), min = std::max<int64_t>(extent.lower_bound(), 0);
  int64_t pads = dim.pad_low + dim.pad_high;
  bool fits = min + pads >= size;
  if (counted == Positions::Floor && (fits || (min == 0 && 1 + pads >= size))) return std::nullopt;
  if (counted == Positions::Ceil && fits && dim.pad_high + dim.stride <= size) {
    dim.pad_high += dim.stride - 1; // the last window still begins before the end
    return std::nullopt;
  }
  IntExpr room = extent + (pads - size);
  IntExpr whole = floor_div(room, dim.stride), partial = ceil_div(room, dim.stride);
  IntExpr wanted = counted == Positions::Ceil
                       ? decided_min(partial + 1, ceil_div(extent + dim.pad_low, dim.stride))
                       : decided_max(whole, decided_min(partial, 0)) + 1;
  dim.pad_high = std::max(dim.pad_high + dim.stride - 1, size - dim.pad_low - min);
  IntExpr there = floor_div(extent + (dim.pad_low + dim.pad_high - size), dim.stride) + 1;
  if (min == 0)
    wanted = decided_min(wanted, decided_min(extent, 1) * there.upper_bound()); // none over an empty dim
  return decided_min(decided_max(wanted, 0), there);
}

// Whether expressions of the extent, whose bounds must be known, describe a pool's window along it.
bool has_formulas(const WindowDim& dim, const Dim& extent, Positions counted) {
  if (extent.is_static() || counted == Positions::Whole || dim.dilated_size() > kMax) return false;
  if (extent.extent.upper_bound() == INT64_MAX) // decided again once its bounds are known
    return counted == Positions::Floor;
  return counted == Positions::Floor || dim.pad_high <= dim.dilated_size();
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
  // An empty list means the default for other attributes, but kernel_shape needs an entry per dim.
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

std::optional<SpatialPads> resolve_auto_pad(NodeContext& node, Value x, std::string_view what,
                                            WindowAttributes& attributes) {
  SpatialPads around(attributes.kernel.size(), {0, 0});
  bool upper = attributes.auto_pad == AutoPad::SameUpper;
  if (!upper && attributes.auto_pad != AutoPad::SameLower) return around;
  for (size_t i = 0; i < around.size(); ++i) {
    const IntExpr extent = x.type().dims[i + 2].extent;
    int64_t stride = attributes.strides[i], size = (attributes.kernel[i] - 1) * attributes.dilations[i] + 1;
    if (size > kMax && !extent.is_constant())
      return (void)node.static_dim(x, static_cast<int>(i) + 2, what), std::nullopt;
    IntExpr all = decided_max((ceil_div(extent, stride) - 1) * stride + size - extent, 0);
    IntExpr half = floor_div(all, 2), low = upper ? half : all - half;
    if (all.is_constant()) {
      attributes.pads_low[i] = low.value();
      attributes.pads_high[i] = (all - low).value();
    } else if (extent.upper_bound() == INT64_MAX) {
      return (void)node.static_dim(x, static_cast<int>(i) + 2, what), std::nullopt;
    } else {
      around[i] = {low, all - low};
    }
  }
  attributes.auto_pad = AutoPad::NotSet;
  return around;
}

Value pad_spatial(NodeContext& node, Value x, const SpatialPads& around, Value value) {
  for (size_t i = 0; i < around.size() && x; ++i) {
    const auto& [low, high] = around[i];
    if (low == IntExpr(0) && high == IntExpr(0)) continue;
    std::vector<Dim> before = x.type().dims, behind = before;
    before[i + 2] = Dim(low);
    behind[i + 2] = Dim(high);
    x = node.concatenate(
        {node.broadcast_in_dim(value, before, {}), x, node.broadcast_in_dim(value, behind, {})},
        static_cast<int>(i) + 2);
  }
  return x;
}

std::optional<Window> spatial_window(NodeContext& node, Value x, std::string_view what,
                                     const WindowAttributes& attributes, Positions counted, Kept* kept) {
  Window window;
  for (size_t i = 0; i < attributes.kernel.size(); ++i) {
    WindowDim dim;
    dim.size = attributes.kernel[i];
    dim.stride = attributes.strides[i];
    dim.dilation = attributes.dilations[i];
    dim.pad_low = attributes.pads_low[i];
    dim.pad_high = attributes.pads_high[i];
    int axis = static_cast<int>(i) + 2;
    const Dim& extent = x.type().dims[static_cast<size_t>(axis)];
    auto room_for = [&](int64_t in) { return in + dim.pad_low + dim.pad_high - dim.dilated_size(); };
    bool exceeds = extent.is_static() && extent.value() > 0 && room_for(extent.value()) < 0;
    std::optional<IntExpr> positions;
    if (dim.stride != 1 && kept && has_formulas(dim, extent, counted)) {
      if (extent.extent.upper_bound() < INT64_MAX) positions = varying_positions(dim, extent.extent, counted);
    } else if (dim.stride != 1 && (counted == Positions::Ceil || (counted == Positions::Floor && exceeds))) {
      auto in = node.static_dim(x, axis, what);
      if (!in) return std::nullopt;
      int64_t room = room_for(*in);
      int64_t rounding = counted == Positions::Ceil && room > 0 ? dim.stride - 1 : 0;
      int64_t places = room <= -dim.stride ? 0 : (room + rounding) / dim.stride + 1;
      if (places > 0 && (places - 1) * dim.stride >= *in + dim.pad_low) --places;
      if (places > 0) {
        int64_t reached = (places - 1) * dim.stride + dim.dilated_size() - *in - dim.pad_low;
        dim.pad_high = std::max(dim.pad_high, reached);
        // A dropped last window must not come back through the padding that was asked for.
        while (dim.output_size(*in) > places) --dim.pad_high;
      }
    }
    if (kept) kept->push_back(std::move(positions));
    int64_t min = counted == Positions::Whole ? 0 : 1 - 2 * dim.stride; // less makes the count negative
    if (extent.is_static() &&
        !node.check(extent.value() == 0 || room_for(extent.value()) >= min,
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
