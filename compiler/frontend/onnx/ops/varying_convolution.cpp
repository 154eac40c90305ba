// See varying_convolution.h.
#include "compiler/frontend/onnx/ops/varying_convolution.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/support/int_expr_values.h"

#include <numeric>

namespace firn::onnx {

namespace {

Value number(NodeContext& node, int64_t value) {
  return node.scalar_int(DType::I64, value);
}

Value padded(NodeContext& node, Value x, const WindowAttributes& attributes) {
  Ints low(static_cast<size_t>(x.rank()), 0), high = low;
  for (size_t i = 0; i < attributes.strides.size(); ++i) {
    low[i + 2] = attributes.pads_low[i];
    high[i + 2] = attributes.pads_high[i];
  }
  bool as_it_is = low == high && low == Ints(low.size(), 0);
  return as_it_is ? x : node.pad(x, node.scalar(x.dtype(), 0), low, high);
}

// The position of tap k of window p, p * stride + k * dilation, as i64 of `dims`, in which `place` and `tap`
// are the dims of p and k.
Value tap_positions(NodeContext& node, const std::vector<Dim>& dims, int place, int tap, int64_t stride,
                    int64_t dilation) {
  Value start = multiply(node, node.iota(DType::I64, dims, place), number(node, stride));
  return add(node, start, multiply(node, node.iota(DType::I64, dims, tap), number(node, dilation)));
}

// x [...,in,...] as [...,places,taps,...] along `axis`.
Value gathered_columns(NodeContext& node, Value x, int axis, const Dim& taps, int64_t stride,
                       int64_t dilation) {
  if (!x) return {};
  IntExpr room = x.type().dims[static_cast<size_t>(axis)].extent - (taps.extent - 1) * dilation - 1;
  if (!node.check(room.upper_bound() >= 0, "the filter is larger than the padded input")) return {};
  IntExpr places = floor_div(room, stride) + 1;
  Dim out = ImportState::with_counts({Dim(decided_max(places, 0))})[0];
  Value at = tap_positions(node, {out, taps}, 0, 1, stride, dilation);
  if (room.lower_bound() < 0) {
    Value size = multiply(node, plus(node, extent_value(node, taps), -1), number(node, dilation));
    Value rest = subtract(node, plus(node, node.dim_size(x, axis), -1), size);
    at = add(node, at, subtract(node, within_bound(node, rest, room.upper_bound()), rest));
  }
  return node.op(Opcode::Gather, {x, at}, {{"axis", int64_t{axis}}});
}

// dims with `first` split into groups and the extent of each.
std::vector<Dim> grouped(std::vector<Dim> dims, size_t first, int64_t groups) {
  dims[first] = Dim(floor_div(dims[first].extent, groups));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(first), Dim(groups));
  return dims;
}

// The product of dims [from, to).
std::optional<Dim> product_of(NodeContext& node, const std::vector<Dim>& dims, size_t from, size_t to) {
  return node.product(
      {dims.begin() + static_cast<std::ptrdiff_t>(from), dims.begin() + static_cast<std::ptrdiff_t>(to)});
}

// Positions of columns [N,C,k...,p...] in an image of `full` extents, i64[k..., p...].
Value flat_positions(NodeContext& node, const std::vector<Dim>& dims, const WindowAttributes& attributes,
                     const std::vector<Dim>& full) {
  size_t rank = full.size();
  std::vector<Dim> places(dims.begin() + 2, dims.end());
  Value position;
  for (size_t i = 0; i < rank; ++i) {
    Value along = tap_positions(node, places, static_cast<int>(rank + i), static_cast<int>(i),
                                attributes.strides[i], attributes.dilations[i]);
    if (position) along = add(node, along, multiply(node, position, extent_value(node, full[i])));
    position = along;
  }
  return position;
}

} // namespace

Value convolution_by_columns(NodeContext& node, Value x, Value w, const WindowAttributes& attributes,
                             int64_t groups, std::optional<DType> result) {
  if (!x || !w) return {};
  int spatial = x.rank() - 2;
  x = padded(node, x, attributes);
  const std::vector<Dim> taps(w.type().dims.begin() + 2, w.type().dims.end());
  for (int i = spatial - 1; i >= 0; --i) {
    auto at = static_cast<size_t>(i);
    x = gathered_columns(node, x, 2 + i, taps[at], attributes.strides[at], attributes.dilations[at]);
  }
  if (!x) return {};
  // [N,C,p,k,p,k,...] by [M,C,k...]: [M,N,p...], or of groups [N,g,C/g,...] by [g,M/g,...]: [g,M/g,N,p...].
  int grouping = groups > 1 ? 1 : 0;
  if (grouping) x = node.reshape(x, grouped(x.type().dims, 1, groups));
  if (grouping) w = node.reshape(w, grouped(w.type().dims, 0, groups));
  Ints w_contract{grouping + 1}, x_contract{grouping + 1}, order{grouping + 1};
  for (int i = 0; i < spatial; ++i) {
    w_contract.push_back(grouping + 2 + i);
    x_contract.push_back(grouping + 3 + 2 * i);
  }
  Value y = grouping ? dot(node, w, x, {0}, {1}, w_contract, x_contract, result)
                     : dot(node, w, x, {}, {}, w_contract, x_contract, result);
  if (!y) return {};
  for (int i = 0; i < y.rank(); ++i)
    if (i != order[0]) order.push_back(i);
  y = node.transpose(y, order);
  if (!grouping || !y) return y;
  std::vector<Dim> dims = y.type().dims;
  auto channels = product_of(node, dims, 1, 3);
  if (!channels) return {};
  dims.erase(dims.begin() + 1);
  dims[1] = *channels;
  return node.reshape(y, dims);
}

Value add_columns(NodeContext& node, Value columns, const WindowAttributes& attributes,
                  const std::vector<Dim>& image) {
  if (!columns) return {};
  const std::vector<Dim> dims = columns.type().dims;
  std::vector<Dim> full;
  for (size_t i = 0; i < image.size(); ++i) {
    if (attributes.pads_low[i] < 0 || attributes.pads_high[i] < 0)
      return node.fail_unsupported("attribute pads has numbers below 0 beside extents that vary"), Value{};
    full.emplace_back(image[i].extent + (attributes.pads_low[i] + attributes.pads_high[i]));
  }
  full = ImportState::with_counts(std::move(full));
  auto rows = product_of(node, dims, 0, 2), count = product_of(node, dims, 2, dims.size()),
       pixels = node.product(full);
  Value positions = flat_positions(node, dims, attributes, full);
  if (!rows || !count || !pixels || !positions) return {};
  Value flat = node.reshape(node.reshape(columns, {dims[0], dims[1], *count}), {*rows, *count});
  Value updates = node.widened(node.transpose(flat, {1, 0}));
  if (!updates) return {};
  Value sums = node.op(
      Opcode::ScatterND,
      {node.splat(updates.dtype(), {*pixels, *rows}, 0), node.reshape(positions, {*count, Dim(1)}), updates},
      {{"reduction", Word{"add"}}});
  std::vector<Dim> whole{dims[0], dims[1]};
  whole.insert(whole.end(), full.begin(), full.end());
  Value y = node.reshape(node.transpose(sums, {1, 0}), {dims[0], dims[1], *pixels});
  y = node.reshape(y, whole);
  for (size_t i = 0; i < image.size(); ++i)
    if (y && full[i] != image[i])
      y = node.slice_symbolic(y, static_cast<int>(i) + 2, attributes.pads_low[i], image[i].extent);
  return node.convert(y, columns.dtype());
}

} // namespace firn::onnx
