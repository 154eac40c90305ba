// Importers of operators on images and regions: sampling by grids, deformable convolution, region pooling,
// unpooling.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/convolution_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/regions.h"
#include "compiler/frontend/onnx/ops/sampling.h"
#include "compiler/frontend/onnx/ops/window.h"
#include "compiler/support/int_expr_values.h"

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
  std::vector<Dim> wanted = grid.type().dims;
  wanted.front() = x.type().dims[0];
  wanted.back() = Dim(count);
  grid = input_with_extents(node, 1, wanted);
  if (!grid) return;
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

// Positions of pixels in [-1,1] as rows (x, y[, z], 1), [count, rank + 1]; corners of a single pixel align at
// 0, as in PyTorch. Computed in f64, to be rounded only once.
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
  Dim batch{0};
  std::vector<Dim> in, out; // spatial extents
  int64_t channels = 0;
  Ints w; // dims
  int64_t groups = 1, offset_groups = 1, taps = 1;
  Window window;
};

std::optional<Deformable> read_deformable(NodeContext& node) {
  if (!node.check_rank(0, 4) || !node.check_rank(1, 4) || !check_pixels(node)) return std::nullopt;
  auto channels = node.static_dim(0, 1);
  auto w = channels ? node.static_dims(1) : std::nullopt;
  if (!w || !spatial_extents(node, 1)) return std::nullopt;
  Value x = node.input(0);
  auto attributes = read_window(node, 2, Ints(w->begin() + 2, w->end()));
  auto around = attributes ? resolve_auto_pad(node, x, node.input_label(0), *attributes) : std::nullopt;
  if (!around) return std::nullopt;
  for (const auto& pads : *around)
    if (pads != std::pair(IntExpr(0), IntExpr(0)))
      return node.fail_unsupported("auto_pad along a dim that varies"), std::nullopt;
  auto window = spatial_window(node, x, node.input_label(0), *attributes, Positions::Whole);
  if (!window) return std::nullopt;
  const std::vector<Dim>& dims = x.type().dims;
  Deformable d;
  d.batch = dims[0];
  d.in = {dims[2], dims[3]};
  d.channels = *channels;
  d.w = *w;
  d.groups = node.int_attribute("group", 1);
  d.offset_groups = node.int_attribute("offset_group", 1);
  d.taps = (*w)[2] * (*w)[3];
  d.window = *window;
  for (size_t i = 0; i < 2; ++i) {
    const WindowDim& dim = window->dims[i];
    IntExpr places =
        floor_div(d.in[i].extent + (dim.pad_low + dim.pad_high - dim.dilated_size()), dim.stride) + 1;
    d.out.push_back(ImportState::with_counts({Dim(decided_max(places, 0))})[0]);
  }
  bool fits = d.groups > 0 && d.offset_groups > 0 && *channels % d.groups == 0 && (*w)[0] % d.groups == 0 &&
              *channels % d.offset_groups == 0 && (*w)[1] == *channels / d.groups && *channels > 0;
  if (!node.check(fits, "groups do not fit the channels of input and filter") ||
      (node.has_input(3) && !node.check_dims(3, {(*w)[0]})))
    return std::nullopt;
  return d;
}

// An input that has `channels` channels at each position of the output; null after a failure.
Value at_outputs(NodeContext& node, const Deformable& d, int input, int64_t channels, DType work) {
  std::vector<Dim> wanted{d.batch, Dim(channels), d.out[0], d.out[1]};
  return node.convert(input_with_extents(node, input, wanted), work);
}

// The positions of the taps along spatial dim `axis`, before offsets: [taps * positions].
Value regular_positions(NodeContext& node, const Deformable& d, int axis, const Dim& samples, DType work) {
  const WindowDim& dim = d.window.dims[static_cast<size_t>(axis)];
  std::vector<Dim> dims{Dim(d.w[2]), Dim(d.w[3]), d.out[0], d.out[1]};
  auto number = [&](int64_t value) { return node.scalar_int(DType::I64, value); };
  Value tap = multiply(node, node.iota(DType::I64, dims, axis), number(dim.dilation));
  Value first = multiply(node, node.iota(DType::I64, dims, axis + 2), number(dim.stride));
  Value place = add(node, first, subtract(node, tap, number(dim.pad_low)));
  return node.reshape(node.convert(place, work), {samples});
}

void import_deform_conv(NodeContext& node) {
  auto read = read_deformable(node);
  if (!read) return;
  const Deformable& d = *read;
  DType dtype = node.input(0).dtype(), work = dtype == DType::F64 ? DType::F64 : DType::F32;
  Value offsets = at_outputs(node, d, 2, d.offset_groups * d.taps * 2, work);
  auto positions = node.product(d.out), batch = node.product({d.batch, Dim(d.offset_groups)});
  auto samples = positions ? node.product({Dim(d.taps), *positions}) : std::nullopt;
  if (!offsets || !samples || !batch) return;
  const Dim channels(d.channels / d.offset_groups), taps(d.taps);
  Value image = node.reshape(node.convert(node.input(0), work), {*batch, channels, d.in[0], d.in[1]});
  offsets = node.reshape(offsets, {*batch, taps, Dim(2), *positions});
  Values points;
  for (int axis = 0; axis < 2; ++axis) {
    Value along = node.reshape(node.slice_dim(offsets, 2, axis, axis + 1), {*batch, *samples});
    points.push_back(add(node, along, regular_positions(node, d, axis, *samples, work)));
  }
  if (node.failed()) return;
  Value columns = sample_image(node, image, points, Sampling{});
  if (node.has_input(4)) {
    Value mask = at_outputs(node, d, 4, d.offset_groups * d.taps, work);
    columns = multiply(node, columns, node.reshape(mask, {*batch, *samples, Dim(1)}));
  }
  // [batch * offset_groups, taps, positions, channels] to [batch, groups, channels of a group * taps,
  // positions]
  const Dim inputs(d.w[1] * d.taps);
  columns = node.transpose(node.reshape(columns, {*batch, taps, *positions, channels}), {0, 3, 1, 2});
  columns = node.reshape(columns, {d.batch, Dim(d.groups), inputs, *positions});
  Value filter =
      node.reshape_to(node.convert(node.input(1), work), {d.groups, d.w[0] / d.groups, inputs.value()});
  Value y = node.transpose(dot(node, filter, columns, {0}, {1}, {2}, {2}), {2, 0, 1, 3});
  y = node.reshape(y, {d.batch, Dim(d.w[0]), d.out[0], d.out[1]});
  if (node.has_input(3))
    y = node.binary(Opcode::Add, y, per_channel(node, node.convert(node.input(3), work), 4));
  node.set_output(0, node.convert(y, dtype));
}

// --- MaxUnpool: elements put back where MaxPool's indices say, zeros elsewhere.

// The shape from which the window pooled; MaxPool's indices are positions in it.
std::optional<std::vector<Dim>> unpooled_shape(NodeContext& node) {
  const std::vector<Dim>& dims = node.input(0).type().dims;
  auto window = read_window(node, static_cast<int>(dims.size()) - 2, {});
  if (!window) return std::nullopt;
  std::vector<Dim> shape(dims.begin(), dims.begin() + 2);
  for (size_t i = 0; i < window->kernel.size(); ++i) {
    if (dims[i + 2].extent.upper_bound() >= int64_t{1} << 31)
      return node.fail_unsupported("dim " + dims[i + 2].extent.to_string() + " is too long to unpool" +
                                   binding_advice({dims[i + 2]})),
             std::nullopt;
    IntExpr extent = (dims[i + 2].extent - 1) * window->strides[i] +
                     (window->kernel[i] - window->pads_low[i] - window->pads_high[i]);
    if (!node.check(extent.upper_bound() > 0, "the unpooled shape is out of range")) return std::nullopt;
    shape.push_back(ImportState::with_counts({Dim(decided_max(extent, 0))})[0]);
  }
  return shape;
}

// y padded with zeros at the end to the larger shape in input 2.
Value in_output_shape(NodeContext& node, Value y) {
  auto wanted = run_dims(node, 2);
  if (!y || !wanted) return {};
  const std::vector<Dim> dims = y.type().dims;
  if (!node.check(wanted->size() == dims.size(), "input 'output_shape' wants one extent per dim")) return {};
  SpatialPads behind;
  for (size_t i = 2; i < dims.size(); ++i) {
    IntExpr rest = (*wanted)[i].extent - dims[i].extent;
    if (!node.check(rest.upper_bound() >= 0 && rest.upper_bound() < (1 << 24),
                    "input 'output_shape' is smaller than the unpooled shape"))
      return {};
    behind.emplace_back(0, decided_max(rest, 0));
  }
  y = pad_spatial(node, y, behind, node.scalar(y.dtype(), 0));
  y = with_extents(node, y, *wanted);
  if (y && y.type().dims != *wanted)
    return node.fail_unsupported("input 'output_shape' is " + Type::tensor(y.dtype(), *wanted).to_string() +
                                 " behind " + Type::tensor(y.dtype(), dims).to_string()),
           Value{};
  return y;
}

void import_max_unpool(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return;
  Value x = node.input(0), indices = input_with_extents(node, 1, x.type().dims);
  auto shape = indices ? unpooled_shape(node) : std::nullopt;
  auto places = shape ? node.product(*shape) : std::nullopt, elements = node.product(x.type().dims);
  if (!places || !elements) return;
  if (places->extent.upper_bound() >= int64_t{1} << 31)
    return node.fail_unsupported("the unpooled shape may have " +
                                 std::to_string(places->extent.upper_bound()) + " elements" +
                                 binding_advice(*shape));
  Value y = node.op(
      Opcode::ScatterElements,
      {node.splat(x.dtype(), {*places}, 0), node.reshape(indices, {*elements}), node.reshape(x, {*elements})},
      {{"axis", int64_t{0}}, {"reduction", Word{"none"}}});
  y = node.reshape(y, *shape);
  node.set_output(0, node.has_input(2) ? in_output_shape(node, y) : y);
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
