// Importers of operators on images and regions: sampling by grids, deformable convolution, region pooling,
// unpooling.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/convolution.h"
#include "compiler/frontend/onnx/matrix_product.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/regions.h"
#include "compiler/frontend/onnx/sampling.h"
#include "compiler/frontend/onnx/window.h"

#include <numeric>

namespace firn::onnx {

namespace {

// Largest number of positions for which an importer here makes a constant.
constexpr int64_t kMaxElements = int64_t{1} << 23;

// The static extents of an input's spatial dims, none of them 0.
std::optional<Ints> spatial_extents(NodeContext& node, int input) {
  if (!node.check_rank_at_least(input, 3)) return std::nullopt;
  Ints extents;
  for (int i = 2; i < node.input(input).rank(); ++i) {
    auto extent = node.static_dim(input, i);
    if (!extent || !node.check(*extent > 0, node.input_label(input) + " is empty")) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

// Whether the spatial dims of input 0 have pixels in every run.
bool check_pixels(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return false;
  const std::vector<Dim>& dims = node.input(0).type().dims;
  for (size_t i = 2; i < dims.size(); ++i) {
    if (!node.check(!(dims[i] == Dim(0)), node.input_label(0) + " is empty")) return false;
    if (dims[i].extent.lower_bound() >= 1) continue;
    node.fail_unsupported(node.input_label(0) + " is " + node.input(0).type().to_string() +
                          ", of which dim '" + dims[i].extent.to_string() + "' may be 0");
    return false;
  }
  return true;
}

std::optional<Sampling> read_sampling(NodeContext& node) {
  std::string mode = node.opset() < 20
                         ? node.choice_attribute("mode", "bilinear", {"bilinear", "nearest", "bicubic"})
                         : node.choice_attribute("mode", "linear", {"linear", "nearest", "cubic"});
  std::string padding = node.choice_attribute("padding_mode", "zeros", {"zeros", "border", "reflection"});
  if (node.failed()) return std::nullopt;
  Sampling sampling;
  sampling.interpolation = mode == "nearest"                      ? Interpolation::Nearest
                           : mode == "cubic" || mode == "bicubic" ? Interpolation::Cubic
                                                                  : Interpolation::Linear;
  sampling.edge = padding == "zeros"    ? EdgeMode::Zeros
                  : padding == "border" ? EdgeMode::Border
                                        : EdgeMode::Reflection;
  sampling.align_corners = node.flag_attribute("align_corners", false);
  return sampling;
}

// The grid [N,d...,k] holds positions in [-1,1], the innermost dim of the image first.
void import_grid_sample(NodeContext& node) {
  Value x = node.input(0), grid = node.input(1);
  auto sampling = read_sampling(node);
  if (!sampling || !check_pixels(node) || !node.check_rank(1, x.rank())) return;
  int64_t count = x.rank() - 2;
  if (!node.check(count <= 3,
                  node.input_label(0) + " has " + std::to_string(count) + " spatial dims, wants 1 to 3"))
    return;
  if (!node.check(grid.type().dims.back() == Dim(count), node.input_label(1) + " is " +
                                                             grid.type().to_string() + ", wants " +
                                                             std::to_string(count) + " coordinates") ||
      !node.check(grid.type().dims[0] == x.type().dims[0], node.input_label(1) + " is of another batch"))
    return;
  std::vector<Dim> out(grid.type().dims.begin() + 1, grid.type().dims.end() - 1);
  auto positions = node.product(out);
  if (!positions) return;
  Value wide = node.convert(grid, grid.dtype() == DType::F64 ? DType::F64 : DType::F32);
  wide = node.reshape(wide, {x.type().dims[0], *positions, Dim(count)});
  Values points;
  for (int64_t i = 0; i < count; ++i) {
    Value g = node.squeeze(node.slice_dim(wide, 2, count - 1 - i, count - i), 2);
    Value extent = node.convert(node.dim_size(x, static_cast<int>(i) + 2), wide ? wide.dtype() : DType::F32);
    if (!g || !extent) return;
    Value from_edge = plus(node, g, 1);
    // (g + 1) / 2 * (extent - 1), or ((g + 1) * extent - 1) / 2
    points.push_back(sampling->align_corners
                         ? multiply(node, from_edge, times(node, plus(node, extent, -1), 0.5))
                         : times(node, plus(node, multiply(node, from_edge, extent), -1), 0.5));
  }
  Value y = node.transpose(sample_image(node, x, points, *sampling), {0, 2, 1});
  out.insert(out.begin(), {x.type().dims[0], x.type().dims[1]});
  node.set_output(0, node.reshape(y, out));
}

// Positions of pixels in [-1,1] as rows (x, y[, z], 1), [count, rank + 1]; corners of a single pixel align
// at 0, as in PyTorch. In f64 until they are rounded once.
Value pixel_rows(NodeContext& node, const std::vector<Dim>& extents, bool aligned, DType dtype) {
  auto count = node.product(extents);
  if (!count) return {};
  Values columns;
  for (size_t d = extents.size(); d-- > 0;) {
    Value i = node.iota(DType::I64, {extents[d]}, 0);
    Value n = node.convert(node.dim_size(i, 0), DType::F64);
    Value twice = times(node, node.convert(i, DType::F64), 2);
    Value at = plus(node, divide(node, plus(node, twice, 1), n), -1);
    if (aligned) {
      Value steps = larger(node, plus(node, n, -1), node.scalar(DType::F64, 1));
      at = plus(node, divide(node, twice, steps), -1);
      at = node.select(node.compare("gt", n, node.scalar(DType::F64, 1)), at, node.scalar(DType::F64, 0));
    }
    at = node.broadcast_in_dim(node.convert(at, dtype), extents, {static_cast<int64_t>(d)});
    columns.push_back(node.reshape(at, {*count, Dim(1)}));
  }
  columns.push_back(node.splat(dtype, {*count, Dim(1)}, 1));
  return node.concatenate(std::move(columns), 1);
}

// Rows of positions times theta.
void import_affine_grid(NodeContext& node) {
  Value theta = node.input(0);
  auto size = node.known_dims(1);
  if (!size) return;
  if (!node.check(size->size() == 4 || size->size() == 5,
                  "input 'size' has " + std::to_string(size->size()) + " elements, wants 4 or 5"))
    return;
  std::vector<Dim> extents(size->begin() + 2, size->end());
  int64_t rank = static_cast<int64_t>(extents.size()), count = 1;
  for (const Dim& extent : extents) {
    if (!extent.is_static()) continue;
    if (!node.check(extent.value() > 0 && extent.value() < (1 << 20) &&
                        count <= kMaxElements / extent.value(),
                    "input 'size' is out of range"))
      return;
    count *= extent.value();
  }
  if (!node.check_dims(0, {-1, rank, rank + 1})) return;
  Value base = pixel_rows(node, extents, node.flag_attribute("align_corners", false), theta.dtype());
  if (!base) return;
  Value grid = node.transpose(dot(node, theta, base, {}, {}, {2}, {1}), {0, 2, 1});
  extents.insert(extents.begin(), theta.type().dims[0]);
  extents.emplace_back(rank);
  node.set_output(0, node.reshape(grid, extents));
}

// --- Deformable convolution: columns sampled at shifted positions, then a product with the filter.

struct Deformable {
  Ints x, w; // dims
  Ints out;  // output extents
  int64_t groups, offset_groups, taps;
  Window window;
};

std::optional<Deformable> read_deformable(NodeContext& node) {
  if (!node.check_rank(0, 4) || !node.check_rank(1, 4)) return std::nullopt;
  auto x = node.static_dims(0), w = node.static_dims(1);
  if (!x || !w || !spatial_extents(node, 0) || !spatial_extents(node, 1)) return std::nullopt;
  auto attributes = read_window(node, 2, Ints(w->begin() + 2, w->end()));
  if (!attributes || !resolve_auto_pad(node, node.input(0), node.input_label(0), *attributes))
    return std::nullopt;
  auto window = spatial_window(node, node.input(0), node.input_label(0), *attributes, Positions::Whole);
  if (!window) return std::nullopt;
  Deformable d{*x,
               *w,
               {},
               node.int_attribute("group", 1),
               node.int_attribute("offset_group", 1),
               (*w)[2] * (*w)[3],
               *window};
  for (size_t i = 0; i < 2; ++i) d.out.push_back(window->dims[i].output_size((*x)[i + 2]));
  bool fits = d.groups > 0 && d.offset_groups > 0 && (*x)[1] % d.groups == 0 && (*w)[0] % d.groups == 0 &&
              (*x)[1] % d.offset_groups == 0 && (*w)[1] == (*x)[1] / d.groups && (*x)[1] > 0;
  if (!node.check(fits, "groups do not fit the channels of input and filter") ||
      !node.check_dims(2, {(*x)[0], d.offset_groups * d.taps * 2, d.out[0], d.out[1]}) ||
      (node.has_input(3) && !node.check_dims(3, {(*w)[0]})) ||
      (node.has_input(4) && !node.check_dims(4, {(*x)[0], d.offset_groups * d.taps, d.out[0], d.out[1]})))
    return std::nullopt;
  if (d.taps * d.out[0] <= kMaxElements / d.out[1]) return d;
  node.fail_unsupported("the filter is too large for an output of " + std::to_string(d.out[0]) + " x " +
                        std::to_string(d.out[1]));
  return std::nullopt;
}

// Positions of all taps along spatial dim `axis`: [batch * offset_groups, taps * positions].
Value deformed_positions(NodeContext& node, const Deformable& d, int axis, DType work) {
  std::vector<double> regular;
  const WindowDim& dim = d.window.dims[static_cast<size_t>(axis)];
  for (int64_t tap = 0; tap < d.taps; ++tap)
    for (int64_t o = 0; o < d.out[0] * d.out[1]; ++o) {
      int64_t k = axis == 0 ? tap / d.w[3] : tap % d.w[3], at = axis == 0 ? o / d.out[1] : o % d.out[1];
      regular.push_back(static_cast<double>(at * dim.stride - dim.pad_low + k * dim.dilation));
    }
  int64_t positions = d.out[0] * d.out[1];
  Value offsets =
      node.reshape_to(node.convert(node.input(2), work), {d.x[0] * d.offset_groups, d.taps, 2, positions});
  Value along = node.reshape_to(node.slice_dim(offsets, 2, axis, axis + 1),
                                {d.x[0] * d.offset_groups, d.taps * positions});
  return node.binary(Opcode::Add, along, node.constant(Literal::of(work, {d.taps * positions}, regular)));
}

void import_deform_conv(NodeContext& node) {
  auto read = read_deformable(node);
  if (!read) return;
  const Deformable& d = *read;
  DType dtype = node.input(0).dtype(), work = dtype == DType::F64 ? DType::F64 : DType::F32;
  int64_t positions = d.out[0] * d.out[1], batch = d.x[0], channels = d.x[1] / d.offset_groups;
  Value image =
      node.reshape_to(node.convert(node.input(0), work), {batch * d.offset_groups, channels, d.x[2], d.x[3]});
  Values points{deformed_positions(node, d, 0, work), deformed_positions(node, d, 1, work)};
  if (node.failed()) return;
  Value columns = sample_image(node, image, points, Sampling{});
  if (node.has_input(4)) {
    Value mask =
        node.reshape_to(node.convert(node.input(4), work), {batch * d.offset_groups, d.taps * positions, 1});
    columns = node.binary(Opcode::Multiply, columns, mask);
  }
  // [batch * offset_groups, taps, positions, channels] to [batch, groups, channels of a group * taps,
  // positions]
  columns = node.reshape_to(columns, {batch * d.offset_groups, d.taps, positions, channels});
  columns =
      node.reshape_to(node.transpose(columns, {0, 3, 1, 2}), {batch, d.groups, d.w[1] * d.taps, positions});
  Value filter =
      node.reshape_to(node.convert(node.input(1), work), {d.groups, d.w[0] / d.groups, d.w[1] * d.taps});
  Value y = node.transpose(dot(node, filter, columns, {0}, {1}, {2}, {2}), {2, 0, 1, 3});
  y = node.reshape_to(y, {batch, d.w[0], d.out[0], d.out[1]});
  if (node.has_input(3))
    y = node.binary(Opcode::Add, y, per_channel(node, node.convert(node.input(3), work), 4));
  node.set_output(0, node.convert(y, dtype));
}

// Elements put back where MaxPool's indices say, zeros elsewhere. Indices count within the shape that the
// window undoes; a larger output_shape adds zeros behind.
void import_max_unpool(NodeContext& node) {
  auto dims = node.static_dims(0);
  if (!dims || !node.check_rank_at_least(0, 3) || !node.check_dims(1, *dims)) return;
  auto window = read_window(node, static_cast<int>(dims->size()) - 2, {});
  if (!window) return;
  Ints inferred(dims->begin(), dims->begin() + 2);
  int64_t count = inferred[0] * inferred[1];
  for (size_t i = 0; i < window->kernel.size(); ++i) {
    inferred.push_back(((*dims)[i + 2] - 1) * window->strides[i] - window->pads_low[i] -
                       window->pads_high[i] + window->kernel[i]);
    if (!node.check(inferred.back() > 0 && count < (int64_t{1} << 31) / inferred.back(),
                    "the unpooled shape is out of range"))
      return;
    count *= inferred.back();
  }
  int64_t elements = node.input(0).type().num_elements();
  Value zeros = node.splat(node.input(0).dtype(), {Dim(count)}, 0);
  Value y =
      node.op(Opcode::ScatterElements,
              {zeros, node.reshape_to(node.input(1), {elements}), node.reshape_to(node.input(0), {elements})},
              {{"axis", int64_t{0}}, {"reduction", Word{"none"}}});
  y = node.reshape_to(y, inferred);
  if (node.has_input(2)) {
    auto wanted = node.required_constant_ints(2);
    if (!wanted ||
        !node.check(wanted->size() == inferred.size(), "input 'output_shape' wants one extent per dim"))
      return;
    Ints low(inferred.size(), 0), high;
    for (size_t i = 0; i < inferred.size(); ++i) {
      high.push_back((*wanted)[i] - inferred[i]);
      if (!node.check(high.back() >= 0 && high.back() < (1 << 24),
                      "input 'output_shape' is smaller than the unpooled shape"))
        return;
    }
    y = node.pad(y, node.scalar(node.input(0).dtype(), 0), low, high);
  }
  node.set_output(0, y);
}

const OperatorRow kRows[] = {
    {"", "AffineGrid", 20, kLatest, 2, 2, 1, 1, "float i64", import_affine_grid,
     "sampling positions of an affine map; corners of a single pixel align at 0, as in PyTorch"},
    {"", "DeformConv", 19, kLatest, 3, 5, 1, 1, "T=float T", import_deform_conv,
     "convolution at shifted positions"},
    {"com.microsoft", "GridSample", 1, kLatest, 2, 2, 1, 1, "T=f32 T", import_grid_sample,
     "elements of an image at given positions, interpolated"},
    {"", "GridSample", 16, kLatest, 2, 2, 1, 1, "num float", import_grid_sample,
     "elements of an image at given positions, interpolated; at a border the taps of cubic are clamped, as "
     "in "
     "PyTorch, not the position"},
    {"com.microsoft", "CropAndResize", 1, kLatest, 4, 4, 1, 1, "T=f32|f64 T i32 i32", import_crop_and_resize,
     "regions of images resized to one size"},
    {"", "MaxRoiPool", 1, kLatest, 2, 2, 1, 1, "T=float T", import_max_roi_pool,
     "largest pixels in the bins of regions"},
    {"", "MaxUnpool", 9, kLatest, 2, 3, 1, 1, "float i64 i64", import_max_unpool,
     "elements put back to MaxPool's positions"},
    {"", "NonMaxSuppression", 10, kLatest, 2, 5, 1, 1, "f32 f32 i64 f32 f32", import_non_max_suppression,
     "boxes of highest score that do not overlap"},
    {"", "RoiAlign", 10, kLatest, 3, 3, 1, 1, "T=float T i64", import_roi_align,
     "regions of an image resampled to one size"},
};

} // namespace

std::span<const OperatorRow> vision_operators() {
  return kRows;
}

} // namespace firn::onnx
