// Importers of Conv, ConvTranspose and Col2Im.
#include "compiler/frontend/onnx/convolution.h"
#include "compiler/frontend/onnx/meeting_extents.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/transposed_convolution.h"
#include "compiler/frontend/onnx/window.h"

#include <numeric>

namespace firn::onnx {

namespace {

// The filter's static dims, checked to have the input's rank.
std::optional<Ints> filter_dims(NodeContext& node, int input, int filter) {
  if (!node.check_rank_at_least(input, 3) || !node.check_rank(filter, node.input(input).rank()))
    return std::nullopt;
  auto dims = node.static_dims(filter);
  if (!dims) return std::nullopt;
  for (int64_t extent : *dims)
    if (!node.check(extent > 0, node.input_label(filter) + " is an empty filter")) return std::nullopt;
  return dims;
}

// The dtype of the sums of a convolution, which a bias may follow as input 2.
DType sum_dtype(NodeContext& node) {
  DType dtype = node.input(0).dtype();
  return node.has_input(2) ? NodeContext::widened_dtype(dtype) : dtype;
}

Value add_bias(NodeContext& node, Value y, int input, int64_t channels) {
  if (!y || !node.has_input(input)) return y;
  Value bias = input_with_extents(node, input, {Dim(channels)});
  bias = per_channel(node, node.convert(bias, y.dtype()), y.rank());
  return node.convert(node.binary(Opcode::Add, y, bias), node.input(0).dtype());
}

// Filter [C, M/g, k...] of a transposed convolution as the filter [M, C/g, k...] of the convolution over
// dilated input: groups apart, channels swapped, taps reversed.
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
  Ints output_padding = node.ints_attribute("output_padding", Ints(rank, 0)),
       output_shape = node.ints_attribute("output_shape");
  // Some exporters list batch and channel too.
  if (output_shape.size() == rank + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  bool sized = !output_shape.empty(),
       same = attributes.auto_pad == AutoPad::SameUpper || attributes.auto_pad == AutoPad::SameLower;
  if (!node.check(output_padding.size() == rank,
                  "attribute output_padding wants one number per spatial dim") ||
      !node.check(!sized || output_shape.size() == rank,
                  "attribute output_shape wants one number per spatial dim"))
    return std::nullopt;
  Window window;
  for (size_t i = 0; i < rank; ++i) {
    WindowDim dim;
    dim.size = attributes.kernel[i];
    dim.dilation = attributes.dilations[i];
    dim.input_dilation = attributes.strides[i];
    if (!node.check(output_padding[i] >= 0 && output_padding[i] < (int64_t{1} << 31),
                    "attribute output_padding is negative") ||
        !node.check(!sized || (output_shape[i] > 0 && output_shape[i] < (int64_t{1} << 40)),
                    "attribute output_shape is not positive"))
      return std::nullopt;
    Cut cut{attributes.pads_low[i], attributes.pads_high[i]};
    if (sized) {
      auto in = node.static_dim(0, static_cast<int>(i) + 2);
      if (!in) return std::nullopt;
      int64_t full = (*in - 1) * dim.input_dilation + output_padding[i] + dim.dilated_size();
      cut = split_cut(full, output_shape[i], attributes.auto_pad);
    } else if (same) { // as long as the input times the stride
      cut = split_cut(output_padding[i] + dim.dilated_size() - dim.input_dilation, 0, attributes.auto_pad);
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
  if (!channels ||
      !node.check(groups > 0 && *channels % groups == 0 && (*dims)[0] == *channels,
                  "input has " + std::to_string(*channels) + " channels in " + std::to_string(groups) +
                      " groups, the filter has " + std::to_string((*dims)[0])))
    return;
  auto attributes = read_window(node, node.input(0).rank() - 2, Ints(dims->begin() + 2, dims->end()));
  if (!attributes) return;
  auto window = transposed_window(node, *attributes);
  if (!window) return;
  bool varies = false;
  for (size_t i = 0; i < window->dims.size(); ++i)
    varies |= window->dims[i].input_dilation > 1 && !node.input(0).type().dims[i + 2].is_static();
  if (varies) {
    Value y = convolution_by_phases(node, node.input(1), *window, groups);
    return node.set_output(0, add_bias(node, y, 2, groups * (*dims)[1]));
  }
  Value w = transposed_filter(node, node.input(1), *dims, groups);
  Attributes made{{"window", *window}, {"groups", groups}};
  if (DType sums = sum_dtype(node); sums != node.input(0).dtype()) made.set("result", sums);
  Value y = node.op(Opcode::Convolution, {node.input(0), w}, made);
  node.set_output(0, add_bias(node, y, 2, groups * (*dims)[1]));
}

// --- Col2Im: columns [N, C * taps, positions] are added up where their taps lie in the image: a transposed
// convolution whose filters pick one tap each.

struct Columns {
  Ints image, block; // static extents
  Ints positions;    // per spatial dim
  Window window;
  int64_t taps = 1;
};

std::optional<Columns> read_columns(NodeContext& node) {
  auto image = node.required_constant_ints(1), block = node.required_constant_ints(2);
  if (!image || !block || !node.check_rank(0, 3)) return std::nullopt;
  size_t rank = image->size();
  bool sane = rank > 0 && rank < 8 && block->size() == rank;
  for (size_t i = 0; sane && i < rank; ++i)
    sane = (*block)[i] > 0 && (*block)[i] <= (*image)[i] + (1 << 16) && (*image)[i] > 0 &&
           (*image)[i] < (1 << 24);
  if (!node.check(sane, "inputs 'image_shape' and 'block_shape' do not fit each other")) return std::nullopt;
  auto attributes = read_window(node, static_cast<int>(rank), *block);
  if (!attributes) return std::nullopt;
  Columns columns{*image, *block, {}, {}, 1};
  for (size_t i = 0; i < rank; ++i) {
    WindowDim dim;
    dim.size = (*block)[i];
    dim.dilation = attributes->dilations[i];
    dim.input_dilation = attributes->strides[i];
    int64_t room = (*image)[i] + attributes->pads_low[i] + attributes->pads_high[i] - dim.dilated_size();
    if (!node.check(room >= 0, "the block is larger than the padded image")) return std::nullopt;
    columns.positions.push_back(room / dim.input_dilation + 1);
    dim.pad_low = dim.dilated_size() - 1 - attributes->pads_low[i];
    dim.pad_high = (*image)[i] + dim.dilated_size() - 2 -
                   (columns.positions.back() - 1) * dim.input_dilation - dim.pad_low;
    columns.window.dims.push_back(dim);
    columns.taps *= dim.size;
    if (!node.check(columns.taps < (1 << 12), "the block has too many elements")) return std::nullopt;
  }
  return columns;
}

// The filters [taps, block...]: number k is 1 at tap k counted from the end, as a transposed convolution
// reads them.
Value tap_filters(NodeContext& node, DType dtype, const Columns& columns) {
  Ints dims{columns.taps};
  dims.insert(dims.end(), columns.block.begin(), columns.block.end());
  std::vector<double> ones(static_cast<size_t>(columns.taps * columns.taps), 0);
  for (int64_t k = 0; k < columns.taps; ++k)
    ones[static_cast<size_t>(k * columns.taps + columns.taps - 1 - k)] = 1;
  return node.constant(Literal::of(dtype, dims, ones));
}

void import_col2im(NodeContext& node) {
  auto columns = read_columns(node);
  auto rows = columns ? node.static_dim(0, 1) : std::nullopt;
  if (!rows) return;
  const Type& type = node.input(0).type();
  int64_t channels = *rows / columns->taps, positions = 1;
  for (int64_t count : columns->positions) positions *= count;
  if (!node.check(*rows % columns->taps == 0 && channels > 0 && type.dims[2] == Dim(positions),
                  node.input_label(0) + " is " + type.to_string() + ", wants columns of " +
                      std::to_string(columns->taps) + " elements at " + std::to_string(positions) +
                      " positions"))
    return;
  std::vector<Dim> dims{type.dims[0], type.dims[1]}, filters{Dim(channels), Dim(columns->taps)};
  for (int64_t count : columns->positions) dims.emplace_back(count);
  for (int64_t extent : columns->block) filters.emplace_back(extent);
  Value filter = node.broadcast_to(tap_filters(node, type.dtype, *columns), filters);
  node.set_output(0, node.op(Opcode::Convolution, {node.reshape(node.input(0), dims), filter},
                             {{"window", columns->window}, {"groups", channels}}));
}

const OperatorRow kRows[] = {
    {"", "Col2Im", 18, kLatest, 3, 3, 1, 1, "float i64 i64", import_col2im, "columns added up to an image"},
    {"", "Conv", 1, kLatest, 2, 3, 1, 1, "T=float T", import_conv,
     "convolution with groups, strides and dilations"},
    {"", "ConvTranspose", 1, kLatest, 2, 3, 1, 1, "T=float T", import_conv_transpose,
     "transposed convolution with output padding or shape"},
};

} // namespace

void import_conv(NodeContext& node) {
  Value y = convolve(node, node.input(0), 0, node.input(1), 1, sum_dtype(node));
  if (!y) return;
  node.set_output(0, add_bias(node, y, 2, y.dim(1)));
}

Value per_channel(NodeContext& node, Value vector, int rank) {
  if (!vector) return {};
  std::vector<Dim> dims(static_cast<size_t>(rank - 1), Dim(1));
  dims[0] = vector.type().dims[0];
  return node.reshape(vector, std::move(dims));
}

Value convolve(NodeContext& node, Value x, int input, Value w, int filter, std::optional<DType> result) {
  auto dims = filter_dims(node, input, filter);
  if (!dims || !x || !w) return {};
  auto channels = node.static_dim(input, 1);
  int64_t groups = node.int_attribute("group", 1);
  if (!channels) return {};
  if (!node.check(groups > 0 && *channels % groups == 0 && (*dims)[0] % groups == 0 &&
                      (*dims)[1] == *channels / groups,
                  "input has " + std::to_string(*channels) + " channels in " + std::to_string(groups) +
                      " groups, the filter is " + node.input(filter).type().to_string()))
    return {};
  auto attributes = read_window(node, x.rank() - 2, Ints(dims->begin() + 2, dims->end()));
  if (!attributes) return {};
  auto around = resolve_auto_pad(node, x, node.input_label(input), *attributes);
  if (!around) return {};
  x = pad_spatial(node, x, *around, node.scalar(x.dtype(), 0));
  auto window =
      x ? spatial_window(node, x, node.input_label(input), *attributes, Positions::Whole) : std::nullopt;
  if (!window) return {};
  Attributes made{{"window", *window}, {"groups", groups}};
  if (result && *result != x.dtype()) made.set("result", *result);
  return node.op(Opcode::Convolution, {x, w}, made);
}

std::span<const OperatorRow> convolution_operators() {
  return kRows;
}

} // namespace firn::onnx
