// Resizing by values of a run: positions in f32 and weights in f64, as in resize_taps.cpp. Filters whose
// number of taps varies are matrices over all of the input.
#include "compiler/frontend/onnx/ops/varying_resize.h"

#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/resize_places.h"

#include <cmath>

namespace firn::onnx {

namespace {

constexpr int64_t kMaxResized = int64_t{1} << 24; // f32 holds every integer up to here

class VaryingAxis {
public:
  VaryingAxis(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize)
      : node_(node), x_(x), form_(form), axis_(resize.axis), extent_(node, node.dim_size(x, axis_)),
        positions_(node, node.iota(DType::I64, {resize.output}, 0)), numbers_(numbers(resize)),
        output_(resize.output) {}

  Value resized() {
    Term place = original_place(form_.coordinates, narrow(positions_), numbers_);
    // An index far outside might not fit 64 bits; clamping reads the same edge.
    place = place.op(Opcode::Maximum, place.like(-4.0e9f)).op(Opcode::Minimum, place.like(8.0e9f));
    // The ratio is computed in f64, as f32 would round that of a position just below 0 to 1.
    Term floor = place.floor(), ratio = wide(place) - wide(floor), base = floor.to(DType::I64);
    if (form_.mode != ResizeMode::Nearest)
      return form_.antialias ? filtered(wide(base), ratio) : weighted(base, ratio);
    return gathered(form_.nearest == "floor" ? base : base + rounds_up(form_.nearest, ratio).to(DType::I64));
  }

private:
  ResizedAxis<Term> numbers(const VaryingResize& resize) const {
    Term width = narrow(extent_), output = narrow({node_, node_.dim_size(positions_.value(), 0)});
    if (resize.common_scale) return {width, output, output, {node_, resize.common_scale}};
    if (!resize.scale) return {width, output, output, output / width};
    Term scale = width.like(*resize.scale);
    return {width, output, width * scale, scale};
  }

  Value gathered(const Term& at) {
    Term inside = at.op(Opcode::Maximum, at.like(0)).op(Opcode::Minimum, extent_ - 1.0);
    return gather_inside(node_, x_, axis_, inside.value());
  }

  // The weight of a tap at distance `first` - ratio from the position, f64[output].
  Term weight(const Term& ratio, int64_t first) {
    Term x = (ratio - static_cast<double>(first)).abs();
    if (form_.mode == ResizeMode::Linear) return 1.0 - x;
    if (first == 0 || first == 1) return near_cubic_weight(x, form_.cubic_a);
    return choose(x < 2.0, far_cubic_weight(x, form_.cubic_a), x.like(0));
  }

  Value weighted(const Term& base, const Term& ratio) {
    int64_t first = form_.mode == ResizeMode::Cubic ? -1 : 0, last = form_.mode == ResizeMode::Cubic ? 2 : 1;
    std::vector<Term> weights, places;
    for (int64_t tap = first; tap <= last; ++tap) {
      Term at = base + static_cast<double>(tap), each = weight(ratio, tap);
      if (form_.exclude_outside) {
        Term inside = (at >= 0.0).op(Opcode::And, at.compare("lt", extent_));
        each = choose(inside, each, each.like(0));
      }
      weights.push_back(each);
      places.push_back(at);
    }
    Term sum = weights[0];
    for (size_t t = 1; form_.exclude_outside && t < weights.size(); ++t) sum = sum + weights[t];
    Value result;
    for (size_t t = 0; t < weights.size() && !node_.failed(); ++t) {
      Value each = (form_.exclude_outside ? weights[t] / sum : weights[t]).value();
      std::vector<Dim> dims(static_cast<size_t>(x_.rank() - axis_), Dim(1));
      dims[0] = each.type().dims[0];
      Value part = node_.binary(Opcode::Multiply, gathered(places[t]),
                                node_.reshape(node_.convert(each, x_.dtype()), dims));
      result = result ? node_.binary(Opcode::Add, result, part) : part;
    }
    return result;
  }

  // The filter's value at a distance, 0 beyond its support.
  Term filter(const Term& distance) {
    Term x = distance.abs(), zero = x.like(0);
    if (form_.mode == ResizeMode::Linear) return choose(x < 1.0, 1.0 - x, zero);
    Term far = choose(x < 2.0, far_cubic_weight(x, form_.cubic_a), zero);
    return choose(x <= 1.0, near_cubic_weight(x, form_.cubic_a), far);
  }

  Term column(const Term& x) { return {node_, node_.unsqueeze(x.value(), 1)}; }
  Term summed(const Term& x) { return {node_, node_.reduce(Opcode::Add, x.value(), {1}, true)}; }

  // The weights of `count` elements, the first of which is `first` before the input, at each position,
  // f64[output, count]; and the elements' indices in the input.
  std::pair<Term, Term> weights(const Term& base, const Term& ratio, const Dim& count, const Term& first) {
    Term number = Term(node_, node_.iota(DType::I64, {Dim(1), count}, 1)) - first;
    Term shrink = wide(numbers_.scale).op(Opcode::Minimum, ratio.like(1));
    return {filter((wide(number) - column(base) - column(ratio)) * shrink), number};
  }

  // Applies a filter that is stretched by as much as the axis shrinks. Weights beyond an edge are added to
  // the element at that edge.
  Value filtered(const Term& base, const Term& ratio) {
    const Dim input = x_.type().dims[static_cast<size_t>(axis_)],
              beyond = reach_of_filter(form_, input, output_);
    const Dim all = ImportState::with_counts({Dim(input.extent + beyond.extent * 2)})[0];
    Term reach(node_, extent_value(node_, beyond)), none = extent_.like(0);
    auto [matrix, number] = weights(base, ratio, input, none);
    auto [wider, place] = weights(base, ratio, all, reach);
    Term zero = wider.like(0), total = summed(wider), last = extent_ - 1.0;
    if (form_.exclude_outside) {
      total = summed(matrix);
    } else {
      Term before = summed(choose(place < 0.0, wider, zero)),
           behind = summed(choose(place.compare("gt", last), wider, zero));
      matrix =
          matrix + choose(number == 0.0, before, zero) + choose(number.compare("eq", last), behind, zero);
    }
    matrix = matrix / choose(total == 0.0, total.like(1), total);
    Value y = dot(node_, x_, node_.convert(matrix.value(), x_.dtype()), {}, {}, {axis_}, {1});
    if (!y) return {};
    Ints order;
    for (int i = 0; i + 1 < y.rank(); ++i) order.push_back(i);
    order.insert(order.begin() + axis_, y.rank() - 1);
    return node_.transpose(y, std::move(order));
  }

  NodeContext& node_;
  Value x_;
  const ResizeForm& form_;
  int axis_;
  Term extent_, positions_; // i64: a scalar, and [output]
  ResizedAxis<Term> numbers_;
  Dim output_;
};

// Whether every element of the axis repeats exactly `factor` times, for any extent: the mode's positions
// depend on the index and the scale alone.
bool repeats(const ResizeForm& form, const IntExpr& input, const VaryingResize& resize, int64_t factor) {
  bool known = resize.scale ? *resize.scale == static_cast<float>(factor) : !resize.common_scale;
  bool by_scale = form.coordinates == "asymmetric" || form.coordinates == "half_pixel" ||
                  form.coordinates == "tf_half_pixel_for_nn";
  if (!known || !by_scale || form.mode != ResizeMode::Nearest || input * factor != resize.output.extent)
    return false;
  AxisResize max{.input = input.upper_bound(),
                 .output = input.upper_bound() * factor,
                 .scale = static_cast<float>(factor)};
  max.length = static_cast<float>(max.output);
  Taps taps = make_taps(form, max);
  for (size_t i = 0; i < taps.indices.size(); ++i)
    if (taps.indices[i] != static_cast<int64_t>(i) / factor) return false;
  return true;
}

int64_t scaled_in_f32(int64_t extent, float scale) {
  return static_cast<int64_t>(static_cast<float>(extent) * scale);
}

// The simplest fraction near the scale whose product with each extent of the range, rounded down, equals the
// product in f32; nothing if there is none.
std::optional<std::pair<int64_t, int64_t>> fraction_like(float scale, int64_t min, int64_t max) {
  constexpr int64_t limit = int64_t{1} << 24;
  int64_t above = 1, below = 0, last_above = 0, last_below = 1;
  for (double rest = scale;;) { // its continued fraction
    auto whole = static_cast<int64_t>(rest);
    if (whole >= limit) return std::nullopt;
    std::swap(above, last_above), std::swap(below, last_below);
    above += whole * last_above, below += whole * last_below;
    if (above >= limit || below >= limit) return std::nullopt;
    bool fits = above > 0;
    for (int64_t extent = min; fits && extent <= max; ++extent)
      fits = extent * above / below == scaled_in_f32(extent, scale);
    if (fits) return std::pair(above, below);
    if (rest == static_cast<double>(whole)) return std::nullopt;
    rest = 1 / (rest - static_cast<double>(whole));
  }
}

} // namespace

Value repeated(NodeContext& node, Value x, int axis, int64_t factor, const Dim& output) {
  std::vector<Dim> dims = x.type().dims, result = dims;
  Ints map;
  for (int i = 0; i < x.rank(); ++i) map.push_back(i <= axis ? i : i + 1);
  dims.insert(dims.begin() + axis + 1, Dim(factor));
  result[static_cast<size_t>(axis)] = output;
  return node.reshape(node.broadcast_in_dim(x, dims, map), result);
}

Dim reach_of_filter(const ResizeForm& form, const Dim& input, const Dim& output) {
  int64_t support = form.mode == ResizeMode::Cubic ? 2 : 1;
  IntExpr stretched = ceil_div(input.extent * support, max(output.extent, 1));
  return ImportState::with_counts({Dim(stretched + (support + 2))})[0];
}

std::optional<Dim> scaled_extent(NodeContext& node, Value x, int axis, float scale) {
  const IntExpr& extent = x.type().dims[static_cast<size_t>(axis)].extent;
  int64_t max = extent.upper_bound();
  if (static_cast<double>(max) * scale > kMaxResized) return std::nullopt;
  if (auto factor = fraction_like(scale, std::max<int64_t>(extent.lower_bound(), 0), max))
    return ImportState::with_counts({Dim(floor_div(extent * factor->first, factor->second))})[0];
  Value length = node.binary(Opcode::Multiply, node.convert(node.dim_size(x, axis), DType::F32),
                             node.scalar(DType::F32, scale));
  return counted_extent(node, node.convert(node.unary(Opcode::Floor, length), DType::I64),
                        scaled_in_f32(max, scale));
}

Value resize_varying(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize) {
  const IntExpr& extent = x.type().dims[static_cast<size_t>(resize.axis)].extent;
  int64_t factor = resize.output.extent.upper_bound() / std::max<int64_t>(extent.upper_bound(), 1);
  if (factor > 1 && repeats(form, extent, resize, factor))
    return repeated(node, x, resize.axis, factor, resize.output);
  return VaryingAxis(node, x, form, resize).resized();
}

} // namespace firn::onnx
