// Resizing by values of a run: places in f32, and weights in f64, as resize_taps.cpp has them.
#include "compiler/frontend/onnx/varying_resize.h"

#include "compiler/frontend/onnx/resize_places.h"

#include <cmath>

namespace firn::onnx {

namespace {

class VaryingAxis {
public:
  VaryingAxis(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize)
      : node_(node), x_(x), form_(form), axis_(resize.axis), extent_(node, node.dim_size(x, axis_)),
        positions_(node, node.iota(DType::I64, {resize.output}, 0)), numbers_(numbers(resize)) {}

  Value resized() {
    Term place = original_place(form_.coordinates, narrow(positions_), numbers_);
    // Far outside, the index would leave 64 bits; clamping reads the same edge.
    place = place.op(Opcode::Maximum, place.like(-4.0e9f)).op(Opcode::Minimum, place.like(8.0e9f));
    // The ratio of a place just below 0 is none of f32.
    Term floor = place.floor(), ratio = wide(place) - wide(floor), base = floor.to(DType::I64);
    if (form_.mode != ResizeMode::Nearest) return weighted(base, ratio);
    return gathered(form_.nearest == "floor" ? base : base + rounds_up(form_.nearest, ratio).to(DType::I64));
  }

private:
  ResizedAxis<Term> numbers(const VaryingResize& resize) const {
    Term width = narrow(extent_), output = narrow({node_, node_.dim_size(positions_.value(), 0)});
    if (!resize.scale) return {width, output, output, output / width};
    Term scale = width.like(*resize.scale);
    return {width, output, width * scale, scale};
  }

  Value gathered(const Term& at) {
    Term inside = at.op(Opcode::Maximum, at.like(0)).op(Opcode::Minimum, extent_ - 1.0);
    return node_.op(Opcode::Gather, {x_, inside.value()}, {{"axis", int64_t{axis_}}});
  }

  // Of a tap at a distance of `first` - ratio from the place, f64[output].
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

  NodeContext& node_;
  Value x_;
  const ResizeForm& form_;
  int axis_;
  Term extent_, positions_; // i64: a scalar, and [output]
  ResizedAxis<Term> numbers_;
};

} // namespace

std::optional<Dim> scaled_extent(const IntExpr& extent, float scale) {
  // scale = numerator / 2^shift, exactly.
  int shift = 0;
  float numerator = scale;
  while (numerator != std::floor(numerator) && shift < 24) {
    numerator *= 2;
    ++shift;
  }
  int64_t most = extent.upper_bound(), factor = static_cast<int64_t>(numerator);
  constexpr int64_t exact = int64_t{1} << 24; // f32 holds every integer up to here
  if (numerator != std::floor(numerator) || numerator >= exact || extent.lower_bound() < 0 ||
      most > exact / factor)
    return std::nullopt;
  return Dim(floor_div(extent * factor, int64_t{1} << shift));
}

Value resize_varying(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize) {
  return VaryingAxis(node, x, form, resize).resized();
}

} // namespace firn::onnx
