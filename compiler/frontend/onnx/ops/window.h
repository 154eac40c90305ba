// Windows of convolutions and pooling from the attributes kernel_shape, strides, dilations, pads, auto_pad,
// ceil_mode.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

enum class AutoPad { NotSet, SameUpper, SameLower, Valid };

// The attributes over `rank` spatial dims, with defaults filled in.
struct WindowAttributes {
  Ints kernel, strides, dilations, pads_low, pads_high;
  AutoPad auto_pad = AutoPad::NotSet;
};

// Reads and checks the attributes. `kernel` is the default for kernel_shape, which must agree with it; if it
// is empty, kernel_shape is required.
std::optional<WindowAttributes> read_window(NodeContext& node, int rank, const Ints& kernel);

// How the positions of a window are counted. Whole wants room for at least one position. Floor and Ceil are
// for pools: room / stride + 1 with the quotient rounded to 0, or upwards. A window that exceeds the padded
// extent by less than a stride has one position, and by less than two strides none. The upper padding grows
// so that a last, partial window fits, unless it would begin in the padding.
enum class Positions { Whole, Floor, Ceil };

// Elements before and behind each spatial dim, as expressions of dims.
using SpatialPads = std::vector<std::pair<IntExpr, IntExpr>>;
// Resolves SAME_UPPER and SAME_LOWER to pads in `attributes`, which become NOTSET. Pads that depend on a dim
// that varies are returned, for the caller to put around x. Nothing after a failure; `what` names x.
std::optional<SpatialPads> resolve_auto_pad(NodeContext& node, Value x, std::string_view what,
                                            WindowAttributes& attributes);
Value pad_spatial(NodeContext& node, Value x, const SpatialPads& around, Value value);

// The number of a window's positions that count, by spatial dim; nothing means all.
using Kept = std::vector<std::optional<IntExpr>>;
// The window over spatial dims of x, which begin at dim 2, by resolved attributes. Needs static extents if
// they decide the padding and `kept` is null. `what` names x.
std::optional<Window> spatial_window(NodeContext& node, Value x, std::string_view what,
                                     const WindowAttributes& attributes, Positions counted,
                                     Kept* kept = nullptr);

// The window with one-element dims in front for batch and channel.
Window with_batch_and_channel(const Window& spatial);

} // namespace firn::onnx
