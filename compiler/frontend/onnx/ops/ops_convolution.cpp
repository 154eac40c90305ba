// Importers of Conv, ConvTranspose and Col2Im.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/convolution_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/transposed_convolution.h"
#include "compiler/frontend/onnx/ops/varying_convolution.h"
#include "compiler/frontend/onnx/ops/window.h"
#include "compiler/support/int_expr_values.h"

#include <numeric>

namespace firn::onnx {

namespace {

// x and its filter, perhaps of another dtype than inputs `input` and `filter`, with extents that fit.
struct Filtered {
  Value x, w;
  std::string name; // the filter's name in messages
  int64_t groups;

  // Whether extents of the filter or the channels of x vary.
  bool varies() const { return !w.type().is_static() || !x.type().dims[1].is_static(); }
};

// Fails if positions of taps could overflow.
bool check_short(NodeContext& node, const Filtered& by) {
  for (Value value : {by.x, by.w})
    for (const Dim& dim : value.type().dims)
      if (dim.extent.upper_bound() >= int64_t{1} << 31)
        return node.fail_unsupported("dim " + dim.extent.to_string() + " of " + value.type().to_string() +
                                     " is too long beside filters that vary" + binding_advice({dim})),
               false;
  return true;
}

Value with_dim(NodeContext& node, Value x, int axis, const IntExpr& extent) {
  if (!x) return {};
  std::vector<Dim> dims = x.type().dims;
  dims[static_cast<size_t>(axis)] = ImportState::with_counts({Dim(extent)})[0];
  return with_extents(node, x, dims);
}

// Checks that x has as many channels as the filter wants, by its dim `axis`, and that the taps fit
// kernel_shape.
std::optional<Filtered> read_filter(NodeContext& node, Value x, int input, Value w, int filter, int axis) {
  if (!node.check_rank_at_least(input, 3) || !node.check_rank(filter, node.input(input).rank()) || !x || !w)
    return std::nullopt;
  Filtered read{x, w, node.input_label(filter), node.int_attribute("group", 1)};
  Ints taps = node.ints_attribute("kernel_shape");
  if (node.failed() || !node.check(read.groups > 0 && read.groups < (1 << 20),
                                   "input has " + x.type().dims[1].extent.to_string() + " channels in " +
                                       std::to_string(read.groups) + " groups"))
    return std::nullopt;
  for (size_t i = 0; i < taps.size() && static_cast<int>(i) + 2 < w.rank(); ++i)
    if (taps[i] > 0) read.w = with_dim(node, read.w, static_cast<int>(i) + 2, taps[i]);
  int64_t each = axis == 0 ? 1 : read.groups; // channels of x per channel of the filter
  if (!read.w) return std::nullopt;
  const IntExpr channels = x.type().dims[1].extent,
                own = read.w.type().dims[static_cast<size_t>(axis)].extent;
  if (channels.is_constant())
    read.w = with_dim(node, read.w, axis, floor_div(channels, each));
  else
    read.x = with_dim(node, x, 1, own * each);
  if (axis == 0 && read.x) read.x = with_dim(node, read.x, 1, floor_div(own, read.groups) * read.groups);
  const IntExpr first = read.w ? read.w.type().dims[0].extent : IntExpr(0);
  read.w = with_dim(node, read.w, 0, floor_div(first, read.groups) * read.groups);
  if (!read.x || !read.w) return std::nullopt;
  for (int i = 2; i < read.w.rank(); ++i)
    if (!node.check(read.w.type().dims[static_cast<size_t>(i)].extent.upper_bound() > 0,
                    read.name + " is an empty filter"))
      return std::nullopt;
  const std::vector<Dim>&from = read.x.type().dims, &by = read.w.type().dims;
  bool fits = from[1].extent == by[static_cast<size_t>(axis)].extent * each &&
              floor_div(by[0].extent, read.groups) * read.groups == by[0].extent;
  if (!node.check(fits, "input has " + from[1].extent.to_string() + " channels in " +
                            std::to_string(read.groups) + " groups, the filter is " +
                            node.input(filter).type().to_string()))
    return std::nullopt;
  return read;
}

// The window's attributes by the filter's taps; kernel_shape is not used if these vary.
std::optional<WindowAttributes> read_taps(NodeContext& node, const Filtered& by) {
  Ints taps;
  bool varies = false;
  for (int i = 2; i < by.w.rank(); ++i) {
    const Dim& dim = by.w.type().dims[static_cast<size_t>(i)];
    varies |= !dim.is_static();
    taps.push_back(dim.is_static() ? dim.value() : 1);
  }
  auto attributes = read_window(node, by.w.rank() - 2, taps);
  bool same = attributes &&
              (attributes->auto_pad == AutoPad::SameUpper || attributes->auto_pad == AutoPad::SameLower);
  if (varies && same) return (void)node.static_dims(by.w, by.name), std::nullopt;
  return attributes;
}

// The dtype of the sums of a convolution, which a bias may follow as input 2.
DType sum_dtype(NodeContext& node) {
  DType dtype = node.input(0).dtype();
  return node.has_input(2) ? NodeContext::widened_dtype(dtype) : dtype;
}

Value add_bias(NodeContext& node, Value y, int input) {
  if (!y || !node.has_input(input)) return y;
  Value bias = input_with_extents(node, input, {y.type().dims[1]});
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

// Elements that are cut from both ends of the full transposed convolution, along one dim.
struct Cut {
  int64_t low, high;
};

// The cut that leaves `wanted` of `full` elements.
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
    } else if (same) { // the result is as long as the input times the stride
      cut = split_cut(output_padding[i] + dim.dilated_size() - dim.input_dilation, 0, attributes.auto_pad);
    }
    dim.pad_low = dim.dilated_size() - 1 - cut.low;
    dim.pad_high = dim.dilated_size() - 1 - cut.high + output_padding[i];
    // n elements have n - 1 gaps between them: an empty input would have a negative extent.
    if (node.input(0).type().dims[i + 2] == Dim(0)) {
      int64_t max = dim.pad_low + dim.pad_high - (dim.dilated_size() - 1);
      dim.pad_high -= std::clamp<int64_t>(max, 0, dim.input_dilation - 1);
    }
    window.dims.push_back(dim);
  }
  return window;
}

// A transposed convolution with filters that vary: products with each element, added up at their positions.
Value transposed_by_columns(NodeContext& node, const Filtered& by, const WindowAttributes& attributes) {
  size_t rank = attributes.strides.size();
  if (!check_short(node, by)) return {};
  if (attributes.auto_pad == AutoPad::SameUpper || attributes.auto_pad == AutoPad::SameLower ||
      node.has_attribute("output_shape"))
    return (void)node.static_dims(by.w, by.name), Value{};
  Ints output_padding = node.ints_attribute("output_padding", Ints(rank, 0));
  if (!node.check(output_padding.size() == rank, "attribute output_padding wants one number per spatial dim"))
    return {};
  const std::vector<Dim> from = by.x.type().dims, taps = by.w.type().dims;
  const Dim groups(by.groups), channels(floor_div(from[1].extent, by.groups));
  std::vector<Dim> x_dims{from[0], groups, channels}, w_dims{groups, channels}, image;
  x_dims.insert(x_dims.end(), from.begin() + 2, from.end());
  w_dims.insert(w_dims.end(), taps.begin() + 1, taps.end());
  // [g,C/g,M/g,k...] by [N,g,C/g,p...]: [g,M/g,k...,N,p...], and N in front.
  Value columns = dot(node, node.reshape(by.w, w_dims), node.reshape(by.x, x_dims), {0}, {1}, {1}, {2});
  Ints order{static_cast<int64_t>(rank) + 2};
  for (int64_t i = 0; i < static_cast<int64_t>(2 * rank) + 3; ++i)
    if (i != order[0]) order.push_back(i);
  columns = node.transpose(columns, order);
  if (!columns) return {};
  std::vector<Dim> dims = columns.type().dims;
  dims[1] = ImportState::with_counts({Dim(taps[1].extent * by.groups)})[0];
  dims.erase(dims.begin() + 2);
  for (size_t i = 0; i < rank; ++i) {
    IntExpr size = (from[i + 2].extent - 1) * attributes.strides[i] +
                   (taps[i + 2].extent - 1) * attributes.dilations[i] + 1 + output_padding[i] -
                   (attributes.pads_low[i] + attributes.pads_high[i]);
    if (size.lower_bound() < 0 || output_padding[i] < 0 || output_padding[i] >= (int64_t{1} << 31))
      return (void)node.static_dims(by.w, by.name), Value{};
    image.push_back(ImportState::with_counts({Dim(size)})[0]);
  }
  return add_columns(node, node.reshape(columns, dims), attributes, image);
}

void import_conv_transpose(NodeContext& node) {
  auto by = read_filter(node, node.input(0), 0, node.input(1), 1, 0);
  auto attributes = by ? read_taps(node, *by) : std::nullopt;
  if (!attributes) return;
  if (by->varies())
    return node.set_output(0, add_bias(node, transposed_by_columns(node, *by, *attributes), 2));
  auto window = transposed_window(node, *attributes);
  if (!window) return;
  bool varies = false;
  for (size_t i = 0; i < window->dims.size(); ++i)
    varies |= window->dims[i].input_dilation > 1 && !by->x.type().dims[i + 2].is_static();
  if (varies)
    return node.set_output(0,
                           add_bias(node, convolution_by_phases(node, by->x, by->w, *window, by->groups), 2));
  Value w = transposed_filter(node, by->w, by->w.type().static_dims(), by->groups);
  Attributes made{{"window", *window}, {"groups", by->groups}};
  if (DType sums = sum_dtype(node); sums != node.input(0).dtype()) made.set("result", sums);
  node.set_output(0, add_bias(node, node.op(Opcode::Convolution, {by->x, w}, made), 2));
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

// Col2Im with an image whose extents vary: columns are scattered by addition.
void import_varying_col2im(NodeContext& node) {
  auto block = node.required_constant_ints(2);
  auto image = block && node.check_rank(0, 3) ? run_dims(node, 1) : std::nullopt;
  if (!image) return;
  size_t rank = image->size();
  bool sane = rank > 0 && rank < 8 && block->size() == rank;
  for (size_t i = 0; sane && i < rank; ++i) sane = (*block)[i] > 0 && (*block)[i] < (1 << 16);
  if (!node.check(sane, "inputs 'image_shape' and 'block_shape' do not fit each other")) return;
  auto attributes = read_window(node, static_cast<int>(rank), *block);
  if (!attributes) return;
  Value x = node.input(0);
  int64_t taps = 1;
  std::vector<Dim> dims{x.type().dims[0], Dim(0)}, places;
  for (size_t i = 0; i < rank; ++i) {
    IntExpr room = (*image)[i].extent + (attributes->pads_low[i] + attributes->pads_high[i]) -
                   ((*block)[i] - 1) * attributes->dilations[i] - 1;
    taps *= (*block)[i];
    if (!node.check(room.upper_bound() >= 0 && taps < (1 << 12),
                    "the block is larger than the padded image, or has too many elements"))
      return;
    IntExpr count = floor_div(room, attributes->strides[i]) + 1;
    places.push_back(ImportState::with_counts({Dim(decided_max(count, 0))})[0]);
    dims.emplace_back((*block)[i]);
  }
  auto positions = node.product(places);
  if (!positions) return;
  const IntExpr rows = x.type().dims[1].extent;
  dims[1] = Dim(floor_div(rows, taps));
  x = input_with_extents(node, 0,
                         ImportState::with_counts({dims[0], Dim(dims[1].extent * taps), *positions}));
  dims.insert(dims.end(), places.begin(), places.end());
  node.set_output(0, add_columns(node, node.reshape(x, dims), *attributes, *image));
}

void import_col2im(NodeContext& node) {
  if (!node.constant_ints(node.input(1))) return import_varying_col2im(node);
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
  node.set_output(0, add_bias(node, y, 2));
}

Value per_channel(NodeContext& node, Value vector, int rank) {
  if (!vector) return {};
  std::vector<Dim> dims(static_cast<size_t>(rank - 1), Dim(1));
  dims[0] = vector.type().dims[0];
  return node.reshape(vector, std::move(dims));
}

Value convolve(NodeContext& node, Value x, int input, Value w, int filter, std::optional<DType> result) {
  auto by = read_filter(node, x, input, w, filter, 1);
  auto attributes = by ? read_taps(node, *by) : std::nullopt;
  auto around =
      attributes ? resolve_auto_pad(node, by->x, node.input_label(input), *attributes) : std::nullopt;
  if (!around) return {};
  x = pad_spatial(node, by->x, *around, node.scalar(by->x.dtype(), 0));
  if (by->varies())
    return check_short(node, *by) ? convolution_by_columns(node, x, by->w, *attributes, by->groups, result)
                                  : Value{};
  auto window =
      x ? spatial_window(node, x, node.input_label(input), *attributes, Positions::Whole) : std::nullopt;
  if (!window) return {};
  Attributes made{{"window", *window}, {"groups", by->groups}};
  if (result && *result != x.dtype()) made.set("result", *result);
  return node.op(Opcode::Convolution, {x, by->w}, made);
}

std::span<const OperatorRow> convolution_operators() {
  return kRows;
}

} // namespace firn::onnx
