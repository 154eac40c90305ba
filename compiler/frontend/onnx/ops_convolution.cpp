// Importers of Conv and ConvTranspose.
#include "compiler/frontend/onnx/convolution.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/window.h"

#include <numeric>

namespace firn::onnx {

namespace {

// The filter's static dims, checked to have the input's rank.
std::optional<Ints> filter_dims(NodeContext& node, int input, int filter) {
  if (!node.check_rank_at_least(input, 3) || !node.check_rank(filter, node.input(input).rank())) return std::nullopt;
  auto dims = node.static_dims(filter);
  if (!dims) return std::nullopt;
  for (int64_t extent : *dims)
    if (!node.check(extent > 0, node.input_label(filter) + " is an empty filter")) return std::nullopt;
  return dims;
}

Value add_bias(NodeContext& node, Value y, int input, int64_t channels) {
  if (!y || !node.has_input(input)) return y;
  if (!node.check_dims(input, {channels})) return {};
  return node.binary(Opcode::Add, y, per_channel(node, node.input(input), y.rank()));
}

void import_conv(NodeContext& node) {
  Value y = convolve(node, node.input(0), 0, node.input(1), 1);
  if (!y) return;
  node.set_output(0, add_bias(node, y, 2, y.dim(1)));
}

// Filter [C, M/g, k...] of a transposed convolution as the filter [M, C/g, k...] of the convolution over dilated input:
// groups apart, channels swapped, taps reversed.
Value transposed_filter(NodeContext& node, Value w, const Ints& dims, int64_t groups) {
  size_t rank = dims.size();
  Ints split{groups, dims[0] / groups, dims[1]}, order{0, 2, 1}, joined{groups * dims[1], dims[0] / groups};
  Ints taps(rank - 2);
  std::iota(taps.begin(), taps.end(), 2);
  for (size_t i = 2; i < rank; ++i) {
    split.push_back(dims[i]);
    order.push_back(static_cast<int64_t>(i) + 1);
    joined.push_back(dims[i]);
  }
  w = node.transpose(node.reshape_to(w, split), order);
  return node.op(Opcode::Reverse, {node.reshape_to(w, joined)}, {{"dims", taps}});
}

// What is cut from both ends of the full transposed convolution, along one dim.
struct Cut {
  int64_t low, high;
};

// The cut that gives the extent `wanted` where the full one is `full` long.
Cut split_cut(int64_t full, int64_t wanted, AutoPad auto_pad) {
  int64_t total = full - wanted;
  if (total < 0) return {0, total};
  int64_t low = auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
  return {low, total - low};
}

// The window of a transposed convolution: stride 1 over the input dilated by `strides`.
std::optional<Window> transposed_window(NodeContext& node, const WindowAttributes& attributes) {
  size_t rank = attributes.kernel.size();
  Ints output_padding = node.ints_attribute("output_padding", Ints(rank, 0)), output_shape = node.ints_attribute("output_shape");
  // Some exporters list batch and channel too.
  if (output_shape.size() == rank + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  bool sized = !output_shape.empty(), same = attributes.auto_pad == AutoPad::SameUpper || attributes.auto_pad == AutoPad::SameLower;
  if (!node.check(output_padding.size() == rank, "attribute output_padding wants one number per spatial dim") ||
      !node.check(!sized || output_shape.size() == rank, "attribute output_shape wants one number per spatial dim"))
    return std::nullopt;
  Window window;
  for (size_t i = 0; i < rank; ++i) {
    WindowDim dim;
    dim.size = attributes.kernel[i];
    dim.dilation = attributes.dilations[i];
    dim.input_dilation = attributes.strides[i];
    if (!node.check(output_padding[i] >= 0 && output_padding[i] < (int64_t{1} << 31), "attribute output_padding is negative") ||
        !node.check(!sized || (output_shape[i] > 0 && output_shape[i] < (int64_t{1} << 40)),
                    "attribute output_shape is not positive"))
      return std::nullopt;
    Cut cut{attributes.pads_low[i], attributes.pads_high[i]};
    if (sized || same) {
      auto in = node.static_dim(0, static_cast<int>(i) + 2);
      if (!in) return std::nullopt;
      int64_t full = (*in - 1) * dim.input_dilation + output_padding[i] + dim.dilated_size();
      cut = split_cut(full, sized ? output_shape[i] : *in * dim.input_dilation, attributes.auto_pad);
    }
    dim.pad_low = dim.dilated_size() - 1 - cut.low;
    dim.pad_high = dim.dilated_size() - 1 - cut.high + output_padding[i];
    window.dims.push_back(dim);
  }
  return window;
}

void import_conv_transpose(NodeContext& node) {
  auto dims = filter_dims(node, 0, 1);
  if (!dims) return;
  auto channels = node.static_dim(0, 1);
  int64_t groups = node.int_attribute("group", 1);
  if (!channels || !node.check(groups > 0 && *channels % groups == 0 && (*dims)[0] == *channels,
                               "input has " + std::to_string(*channels) + " channels in " + std::to_string(groups) +
                                   " groups, the filter has " + std::to_string((*dims)[0])))
    return;
  auto attributes = read_window(node, node.input(0).rank() - 2, Ints(dims->begin() + 2, dims->end()));
  if (!attributes) return;
  auto window = transposed_window(node, *attributes);
  if (!window) return;
  Value w = transposed_filter(node, node.input(1), *dims, groups);
  Value y = node.op(Opcode::Convolution, {node.input(0), w}, {{"window", *window}, {"groups", groups}});
  node.set_output(0, add_bias(node, y, 2, groups * (*dims)[1]));
}

const OperatorRow kRows[] = {
    {"", "Conv", 1, kLatest, 2, 3, 1, 1, "T=float T", import_conv, "convolution with groups, strides and dilations"},
    {"", "ConvTranspose", 1, kLatest, 2, 3, 1, 1, "T=float T", import_conv_transpose,
     "transposed convolution with output padding or shape"},
};

} // namespace

Value per_channel(NodeContext& node, Value vector, int rank) {
  if (!vector) return {};
  std::vector<Dim> dims(static_cast<size_t>(rank - 1), Dim(1));
  dims[0] = vector.type().dims[0];
  return node.reshape(vector, std::move(dims));
}

Value convolve(NodeContext& node, Value x, int input, Value w, int filter) {
  auto dims = filter_dims(node, input, filter);
  if (!dims || !x || !w) return {};
  auto channels = node.static_dim(input, 1);
  int64_t groups = node.int_attribute("group", 1);
  if (!channels) return {};
  if (!node.check(groups > 0 && *channels % groups == 0 && (*dims)[0] % groups == 0 && (*dims)[1] == *channels / groups,
                  "input has " + std::to_string(*channels) + " channels in " + std::to_string(groups) +
                      " groups, the filter is " + node.input(filter).type().to_string()))
    return {};
  auto attributes = read_window(node, x.rank() - 2, Ints(dims->begin() + 2, dims->end()));
  if (!attributes) return {};
  auto window = spatial_window(node, input, *attributes, false);
  if (!window) return {};
  return node.op(Opcode::Convolution, {x, w}, {{"window", *window}, {"groups", groups}});
}

std::span<const OperatorRow> convolution_operators() { return kRows; }

} // namespace firn::onnx
