// Importers of Resize and its predecessor Upsample. Every axis is resized by itself: indices and weights are
// computed here from static extents, and a run does gathers (broadcasts and slices if the indices are
// regular), weighted sums of few elements as the composite `resample`, or a small matrix product if a filter
// has many taps. For axes whose extents vary, the run computes indices and weights.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import/unbound_dims.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/resize_taps.h"
#include "compiler/frontend/onnx/ops/varying_resize.h"
#include "compiler/graph/resample.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace firn::onnx {

namespace {

// A gather along one axis: a broadcast if every element repeats f times, a slice if every f-th is read.
Value pick(NodeContext& node, Value x, int axis, const Ints& indices) {
  int64_t extent = x.dim(axis), count = static_cast<int64_t>(indices.size());
  int64_t factor = count / std::max<int64_t>(extent, 1);
  bool repeats = factor > 1 && count == extent * factor;
  int64_t stride = count > 1 ? indices[1] - indices[0] : 1;
  bool strided = count > 0 && stride > 0;
  for (int64_t i = 0; i < count; ++i) {
    repeats = repeats && indices[static_cast<size_t>(i)] == i / factor;
    strided = strided && indices[static_cast<size_t>(i)] == indices[0] + i * stride;
  }
  if (repeats) return repeated(node, x, axis, factor, Dim(count));
  if (!strided) return node.op(Opcode::Gather, {x, node.constant_ints(indices)}, {{"axis", int64_t{axis}}});
  Ints starts(static_cast<size_t>(x.rank()), 0), limits, strides(starts.size(), 1);
  for (const Dim& dim : x.type().dims) limits.push_back(dim.is_static() ? dim.value() : -1);
  starts[static_cast<size_t>(axis)] = indices[0];
  limits[static_cast<size_t>(axis)] = indices.back() + 1;
  strides[static_cast<size_t>(axis)] = stride;
  return node.slice(x, starts, limits, strides);
}

// A vector along `axis` that broadcasts to `like`.
Value along(NodeContext& node, LiteralRef literal, int axis, int rank) {
  Ints dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = literal->num_elements();
  return node.constant(Literal::reshaped(literal, dims));
}

constexpr int kMaxResampled = 4; // taps

// The tables of an axis with weights; taps outermost.
ResampledDim resampled(DType dtype, int axis, const Taps& taps) {
  auto count = static_cast<size_t>(taps.count);
  Ints dims{taps.count, static_cast<int64_t>(taps.indices.size() / count)}, indices;
  std::vector<double> weights;
  for (size_t t = 0; t < count; ++t)
    for (size_t i = t; i < taps.indices.size(); i += count) {
      indices.push_back(taps.indices[i]);
      weights.push_back(taps.weights[i]);
    }
  return {axis, Literal::of(DType::I32, dims, indices), Literal::of(dtype, dims, weights)};
}

bool reads_outside(const Taps& taps) {
  return std::find(taps.outside.begin(), taps.outside.end(), true) != taps.outside.end();
}

// Filters of many taps as a product with a dense matrix [output, input].
Value matrix_product(NodeContext& node, Value x, const AxisResize& axis, const Taps& taps) {
  if (!node.check(axis.input * axis.output <= int64_t{1} << 24,
                  "a filter over dims this long takes too much memory"))
    return {};
  auto matrix = std::make_shared<Literal>(x.dtype(), Ints{axis.output, axis.input});
  std::vector<double> row(static_cast<size_t>(axis.input));
  auto count = static_cast<size_t>(taps.count);
  for (int64_t i = 0; i < axis.output; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t t = static_cast<size_t>(i) * count; t < static_cast<size_t>(i + 1) * count; ++t)
      row[static_cast<size_t>(taps.indices[t])] += taps.weights[t];
    for (int64_t j = 0; j < axis.input; ++j)
      matrix->set_double(i * axis.input + j, row[static_cast<size_t>(j)]);
  }
  Attributes attributes{{"lhs_batch", Ints{}},
                        {"rhs_batch", Ints{}},
                        {"lhs_contract", Ints{axis.axis}},
                        {"rhs_contract", Ints{1}}};
  Value product = node.op(Opcode::Dot, {x, node.constant(LiteralRef(matrix))}, attributes);
  Ints permutation;
  for (int i = 0; i + 1 < x.rank(); ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + axis.axis, x.rank() - 1);
  return node.convert(node.transpose(product, permutation), x.dtype());
}

// One axis that `resample` does not cover.
Value resize_axis(NodeContext& node, Value x, const ResizeForm& form, const AxisResize& axis,
                  const Taps& taps) {
  GraphBuilder builder = node.builder();
  Value result = taps.weights.empty() ? pick(node, x, axis.axis, taps.indices)
                 : taps.count <= kMaxResampled
                     ? make_resample(builder, x, {resampled(x.dtype(), axis.axis, taps)})
                     : matrix_product(node, x, axis, taps);
  if (!result || !reads_outside(taps)) return result;
  auto mask = std::make_shared<Literal>(DType::Bool, Ints{axis.output});
  for (int64_t i = 0; i < axis.output; ++i) mask->set_int(i, taps.outside[static_cast<size_t>(i)]);
  return node.select(along(node, LiteralRef(mask), axis.axis, x.rank()),
                     node.scalar(result.dtype(), form.extrapolation), result);
}

// x rounded to numbers of an integer dtype, halves upwards, still in f32.
Value settle(NodeContext& node, Value x, DType dtype) {
  Value floor = x ? node.unary(Opcode::Floor, node.binary(Opcode::Add, x, node.scalar(x.dtype(), 0.5))) : x;
  return floor ? node.convert(node.op(Opcode::Convert, {floor}, {{"to", dtype}, {"saturate", true}}),
                              DType::F32)
               : floor;
}

// The resizing of each axis.
struct AxisPlans {
  std::vector<AxisResize> fixed;
  std::vector<VaryingResize> varying;
};

// Orders axes by cost: gathers within rows are the most expensive, so they run first if other axes add rows.
std::vector<VaryingResize> cheapest_order(Value x, std::vector<VaryingResize> axes) {
  auto extent = [&](const VaryingResize& axis) {
    return x.type().dims[static_cast<size_t>(axis.axis)].extent.upper_bound();
  };
  auto within_rows = [&](const VaryingResize& axis) { return axis.axis + 1 == x.rank(); };
  bool grows = std::any_of(axes.begin(), axes.end(), [&](const VaryingResize& axis) {
    return !within_rows(axis) && axis.output.extent.upper_bound() > extent(axis);
  });
  if (grows) std::stable_partition(axes.begin(), axes.end(), within_rows);
  return axes;
}

// Interpolation of narrow floats and of integers runs in f32 and rounds at the end; integers are truncated
// and saturate. Antialiased integers are settled after every axis, the innermost first, as images are in
// PyTorch and ONNX Runtime.
void resize(NodeContext& node, const ResizeForm& form, AxisPlans plans) {
  std::vector<AxisResize>& axes = plans.fixed;
  Value x = node.input(0);
  DType dtype = x.dtype();
  bool wide = form.mode != ResizeMode::Nearest && dtype != DType::F32 && dtype != DType::F64;
  if (wide) x = node.convert(x, DType::F32);
  bool settles = form.antialias && is_integer(dtype);
  if (settles) std::sort(axes.begin(), axes.end(), [](auto& a, auto& b) { return a.axis > b.axis; });
  std::vector<ResampledDim> together; // axes before the current one, for one composite
  auto resample = [&] {
    GraphBuilder builder = node.builder();
    if (!together.empty()) x = make_resample(builder, x, std::exchange(together, {}));
  };
  for (const AxisResize& axis : axes) {
    bool whole = axis.roi_start == 0 && axis.roi_end == 1, same = axis.input == axis.output;
    if (!x || (same && axis.input == 0) ||
        (same && axis.scale == 1 && (whole || form.coordinates != "tf_crop_and_resize")))
      continue;
    if (!node.check(axis.input > 0 || axis.output == 0, "resizes an empty dim")) return;
    Taps taps = make_taps(form, axis);
    if (!settles && !taps.weights.empty() && taps.count <= kMaxResampled && !reads_outside(taps)) {
      together.push_back(resampled(x.dtype(), axis.axis, taps));
      continue;
    }
    resample();
    x = resize_axis(node, x, form, axis, taps);
    if (settles) x = settle(node, x, dtype);
  }
  resample();
  for (const VaryingResize& axis : x ? cheapest_order(x, plans.varying) : plans.varying)
    if (x) x = resize_varying(node, x, form, axis);
  if (wide && x)
    x = is_integer(dtype) ? node.op(Opcode::Convert, {x}, {{"to", dtype}, {"saturate", true}})
                          : node.convert(x, dtype);
  node.set_output(0, x);
}

// --- Reading the operators.

constexpr int64_t kMaxExtent = int64_t{1} << 20;

// Whether the matrix of an antialiasing filter is small enough for a run. Integers are rounded after every
// axis, so that they need static taps.
bool can_filter(const ResizeForm& form, DType dtype, const Dim& input, const Dim& output) {
  if (!form.antialias || form.mode == ResizeMode::Nearest) return true;
  constexpr int64_t max = int64_t{1} << 24;
  if (is_integer(dtype) || input.extent.upper_bound() > kMaxExtent ||
      output.extent.upper_bound() > kMaxExtent)
    return false;
  int64_t columns =
      input.extent.upper_bound() + 2 * reach_of_filter(form, input, output).extent.upper_bound();
  return columns <= max / std::max<int64_t>(1, output.extent.upper_bound());
}

// Whether a run can compute the positions of an axis: it does not crop, and has elements. A counted axis may
// turn out to have none; what is read from it then is undefined.
bool can_vary(const ResizeForm& form, const Dim& dim) {
  return !dim.is_static() && dim.extent.lower_bound() >= (dim.counted ? 0 : 1) &&
         dim.extent.upper_bound() <= kMaxExtent && form.coordinates != "tf_crop_and_resize";
}

// Output extents from scales, one per axis in `axes`.
std::optional<AxisPlans> axes_by_scale(NodeContext& node, const ResizeForm& form,
                                       const std::vector<int>& axes, const std::vector<double>& scales) {
  if (!node.check(scales.size() == axes.size(), "has " + std::to_string(scales.size()) + " scales for " +
                                                    std::to_string(axes.size()) + " axes"))
    return std::nullopt;
  AxisPlans result;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto scale = static_cast<float>(scales[i]);
    if (!node.check(scale > 0 && scale <= 1e6f, "scale " + std::to_string(scale) + " is out of range"))
      return std::nullopt;
    const Dim& dim = node.input(0).type().dims[static_cast<size_t>(axes[i])];
    if (scale == 1 && !dim.is_static()) continue;
    auto output = can_vary(form, dim) ? scaled_extent(node, node.input(0), axes[i], scale) : std::nullopt;
    if (output && can_filter(form, node.input(0).dtype(), dim, *output)) {
      result.varying.push_back({axes[i], *output, scale, {}});
      continue;
    }
    auto extent = node.static_dim(0, axes[i]);
    if (!extent) return std::nullopt;
    float length = static_cast<float>(*extent) * scale;
    if (!node.check(*extent <= kMaxExtent && length <= static_cast<float>(kMaxExtent),
                    "resizes a dim beyond 2^20"))
      return std::nullopt;
    result.fixed.push_back({axes[i], *extent, static_cast<int64_t>(length), scale, length});
  }
  return result;
}

// Output extents by the one scale that keeps the ratio of all axes (keep_aspect_ratio_policy). Extents vary,
// so that the run chooses the axis that gets its size.
std::optional<AxisPlans> axes_by_ratio(NodeContext& node, const ResizeForm& form,
                                       const std::vector<int>& axes, const std::vector<Dim>& sizes,
                                       bool smaller_one) {
  Value x = node.input(0), scale;
  double largest = 0;
  auto extent_of = [&](int axis) { return node.convert(node.dim_size(x, axis), DType::F32); };
  for (size_t i = 0; i < axes.size(); ++i) {
    const IntExpr& extent = x.type().dims[static_cast<size_t>(axes[i])].extent;
    Value size = node.convert(extent_value(node, sizes[i]), DType::F32);
    Value own = node.binary(Opcode::Divide, size, extent_of(axes[i]));
    scale = scale ? node.binary(smaller_one ? Opcode::Minimum : Opcode::Maximum, scale, own) : own;
    largest = std::max(largest, static_cast<double>(sizes[i].extent.upper_bound()) /
                                    static_cast<double>(std::max<int64_t>(1, extent.lower_bound())));
  }
  AxisPlans plans;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& dim = x.type().dims[static_cast<size_t>(axes[i])];
    double max = smaller_one ? static_cast<double>(sizes[i].extent.upper_bound())
                             : static_cast<double>(dim.extent.upper_bound()) * largest + 1;
    if (max > kMaxExtent)
      return node.fail_unsupported("resizes a dim beyond 2^20" + binding_advice({dim})), std::nullopt;
    Value length = node.convert(node.binary(Opcode::Multiply, scale, extent_of(axes[i])), DType::F64);
    length = node.unary(Opcode::Floor, plus(node, length, 0.5));
    auto output = counted_extent(node, node.convert(length, DType::I64), static_cast<int64_t>(max));
    if (!output) return std::nullopt;
    if (!can_filter(form, x.dtype(), dim, *output))
      return node.fail_unsupported("a filter over " + x.type().to_string() +
                                   " with keep_aspect_ratio_policy" + binding_advice({dim})),
             std::nullopt;
    plans.varying.push_back({axes[i], *output, {}, scale});
  }
  return plans;
}

// Whether the run can choose the scale of all axes: some vary, and all have elements.
bool varies_by_ratio(NodeContext& node, const ResizeForm& form, const std::vector<int>& axes,
                     const std::vector<Dim>& sizes) {
  bool varies = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& dim = node.input(0).type().dims[static_cast<size_t>(axes[i])];
    varies |= !dim.is_static() || !sizes[i].is_static();
    if (dim.extent.lower_bound() < 1 || dim.extent.upper_bound() > kMaxExtent ||
        sizes[i].extent.lower_bound() < 0 || sizes[i].extent.upper_bound() > kMaxExtent)
      return false;
  }
  return varies && form.coordinates != "tf_crop_and_resize";
}

std::optional<AxisPlans> axes_by_size(NodeContext& node, const ResizeForm& form, const std::vector<int>& axes,
                                      const std::vector<Dim>& sizes) {
  std::string policy =
      node.choice_attribute("keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
  if (!node.check(sizes.size() == axes.size(), "has " + std::to_string(sizes.size()) + " sizes for " +
                                                   std::to_string(axes.size()) + " axes"))
    return std::nullopt;
  if (policy != "stretch" && varies_by_ratio(node, form, axes, sizes))
    return axes_by_ratio(node, form, axes, sizes, policy == "not_larger");
  AxisPlans plans;
  std::vector<AxisResize>& result = plans.fixed;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim& dim = node.input(0).type().dims[static_cast<size_t>(axes[i])];
    if (dim == sizes[i] && !dim.is_static() && policy == "stretch") continue;
    bool varies = !dim.is_static() || !sizes[i].is_static();
    bool sized = dim.extent.lower_bound() >= (dim.counted ? 0 : 1) && sizes[i].extent.lower_bound() >= 0 &&
                 sizes[i].extent.upper_bound() <= kMaxExtent;
    if (varies && policy == "stretch" && sized && can_vary(form, dim.is_static() ? sizes[i] : dim) &&
        can_filter(form, node.input(0).dtype(), dim, sizes[i])) {
      plans.varying.push_back({axes[i], sizes[i], {}, {}});
      continue;
    }
    auto extent = node.static_dim(0, axes[i]);
    if (!extent) return std::nullopt;
    if (!sizes[i].is_static())
      return node.fail_unsupported("size " + sizes[i].extent.to_string() + " is not known" +
                                   binding_advice({sizes[i]})),
             std::nullopt;
    int64_t output = sizes[i].value();
    if (*extent == 0 && output == 0) continue;
    if (!node.check(*extent > 0 && *extent <= kMaxExtent && output <= kMaxExtent,
                    "cannot resize an extent of " + std::to_string(*extent) + " to " +
                        std::to_string(output)))
      return std::nullopt;
    auto length = static_cast<float>(output);
    result.push_back({axes[i], *extent, output, length / static_cast<float>(*extent), length});
  }
  if (policy == "stretch" || result.empty()) return plans;
  float scale = result[0].scale;
  for (const AxisResize& axis : result)
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  for (AxisResize& axis : result) {
    axis.scale = scale;
    axis.length = std::round(scale * static_cast<float>(axis.input));
    if (!node.check(axis.length <= static_cast<float>(kMaxExtent), "resizes a dim beyond 2^20"))
      return std::nullopt;
    axis.output = static_cast<int64_t>(axis.length);
  }
  return plans;
}

bool read_mode(NodeContext& node, ResizeForm& form) {
  std::string mode =
      node.choice_attribute("mode", "nearest", {"nearest", "linear", "bilinear", "trilinear", "cubic"});
  form.mode = mode == "nearest" ? ResizeMode::Nearest
              : mode == "cubic" ? ResizeMode::Cubic
                                : ResizeMode::Linear;
  return !node.failed();
}

bool has_elements(NodeContext& node, int input) {
  return node.has_input(input) &&
         !(node.input(input).type().is_static() && node.input(input).type().num_elements() == 0);
}

std::vector<int> all_axes(int rank) {
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

// Opset 10 and Upsample: scales, no half pixels.
void resize_asymmetric(NodeContext& node, const std::vector<double>& scales) {
  ResizeForm form;
  form.coordinates = "asymmetric";
  form.nearest = "floor";
  if (!read_mode(node, form)) return;
  auto axes = axes_by_scale(node, form, all_axes(node.input(0).rank()), scales);
  if (axes) resize(node, form, std::move(*axes));
}

void import_upsample_1(NodeContext& node) {
  if (node.opset() >= 7) return resize_asymmetric(node, node.floats_attribute("scales"));
  if (!node.check_rank(0, 4)) return;
  resize_asymmetric(node,
                    {1, 1, node.float_attribute("height_scale", 1), node.float_attribute("width_scale", 1)});
}

void import_resize_10(NodeContext& node) {
  auto scales = node.required_constant_doubles(1);
  if (scales) resize_asymmetric(node, *scales);
}

bool read_roi(NodeContext& node, std::vector<AxisResize>& axes, const std::vector<int>& all) {
  if (!has_elements(node, 1)) return node.check(false, "tf_crop_and_resize wants the input 'roi'");
  auto roi = node.required_constant_doubles(1);
  if (!roi ||
      !node.check(roi->size() == 2 * all.size(), "roi has " + std::to_string(roi->size()) +
                                                     " entries, wants " + std::to_string(2 * all.size())))
    return false;
  for (AxisResize& axis : axes) {
    auto i = static_cast<size_t>(std::find(all.begin(), all.end(), axis.axis) - all.begin());
    axis.roi_start = static_cast<float>((*roi)[i]);
    axis.roi_end = static_cast<float>((*roi)[i + all.size()]);
  }
  return true;
}

void import_resize(NodeContext& node) {
  ResizeForm form;
  if (!read_mode(node, form)) return;
  form.coordinates =
      node.choice_attribute("coordinate_transformation_mode", "half_pixel",
                            {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                             "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"});
  form.nearest = node.choice_attribute("nearest_mode", "round_prefer_floor",
                                       {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  form.cubic_a = node.float_attribute("cubic_coeff_a", -0.75);
  form.extrapolation = node.float_attribute("extrapolation_value", 0);
  form.antialias = node.flag_attribute("antialias", false);
  form.exclude_outside = node.flag_attribute("exclude_outside", false);
  Value x = node.input(0);
  std::vector<int> axes = all_axes(x.rank());
  if (node.has_attribute("axes")) {
    auto given = node.axes(node.ints_attribute("axes"), x.rank());
    if (!given) return;
    axes = *given;
  }
  std::optional<AxisPlans> plan;
  if (has_elements(node, 3)) {
    auto sizes = run_dims(node, 3);
    if (sizes) plan = axes_by_size(node, form, axes, *sizes);
  } else if (has_elements(node, 2)) {
    auto scales = node.required_constant_doubles(2);
    if (scales) plan = axes_by_scale(node, form, axes, *scales);
  } else {
    node.fail("wants one of the inputs 'scales' and 'sizes'");
  }
  if (!plan || (form.coordinates == "tf_crop_and_resize" && !read_roi(node, plan->fixed, axes))) return;
  resize(node, form, std::move(*plan));
}

constexpr OperatorRow kRows[] = {
    {"", "Resize", 10, 10, 2, 2, 1, 1, "num float", import_resize_10,
     "resampling by scales: nearest (places round down, as in PyTorch), linear"},
    {"", "Resize", 11, kLatest, 1, 4, 1, 1, "num float float i64", import_resize,
     "resampling: nearest, linear, cubic, antialias; scales constant; where scales keep the size it "
     "is "
     "resampled all the same, as specified; corners align at size * scale before it is whole"},
    {"", "Upsample", 1, 8, 1, 1, 1, 1, "num|bool", import_upsample_1,
     "resampling by scales in attributes; nearest rounds places down"},
    {"", "Upsample", 9, 10, 2, 2, 1, 1, "num|bool float", import_resize_10,
     "resampling by scales; nearest rounds places down"},
};

} // namespace

std::span<const OperatorRow> resize_operators() {
  return kRows;
}

} // namespace firn::onnx
