// The arithmetic of resize_taps.cpp as graph ops: the same roundings, in f32 for places and f64 for weights.
#include "compiler/frontend/onnx/varying_resize.h"

#include "compiler/frontend/onnx/arithmetic.h"

#include <cmath>

namespace firn::onnx {

namespace {

// One axis: f32 scalars, but for `place` of the outputs, f32[output].
class VaryingAxis {
public:
  VaryingAxis(NodeContext& node, Value x, const ResizeForm& form, const VaryingResize& resize)
      : node_(node), x_(x), form_(form), axis_(resize.axis) {
    positions_ = node.iota(DType::I64, {resize.output}, 0);
    extent_ = node.dim_size(x, axis_);
    width_ = node.convert(extent_, DType::F32);
    output_ = node.convert(node.dim_size(positions_, 0), DType::F32);
    scale_ = resize.scale ? node.scalar(DType::F32, *resize.scale) : divide(node, output_, width_);
    length_ = resize.scale ? multiply(node, width_, scale_) : output_;
  }

  Value resized() {
    Value place = original_place();
    // Far outside, the index would leave 64 bits; clamping reads the same edge.
    place = smaller(node_, larger(node_, place, number(-4.0e9f)), number(8.0e9f));
    Value floor = node_.unary(Opcode::Floor, place), ratio = subtract(node_, place, floor);
    Value base = node_.convert(floor, DType::I64);
    if (form_.mode == ResizeMode::Nearest) return gathered(add(node_, base, rounds_up(ratio)));
    return weighted(base, node_.convert(ratio, DType::F64));
  }

private:
  Value number(float value) { return node_.scalar(DType::F32, value); }
  Value index(int64_t value) { return node_.scalar_int(DType::I64, value); }

  Value original_place() {
    Value x = node_.convert(positions_, DType::F32);
    const std::string& mode = form_.coordinates;
    if (mode == "align_corners") {
      Value place = divide(node_, multiply(node_, x, plus(node_, width_, -1)), plus(node_, length_, -1));
      return node_.select(node_.compare("eq", length_, number(1)), number(0), place);
    }
    if (mode == "asymmetric") return divide(node_, x, scale_);
    if (mode == "tf_half_pixel_for_nn") return divide(node_, plus(node_, x, 0.5), scale_);
    if (mode == "half_pixel_symmetric") {
      Value part = divide(node_, output_, multiply(node_, scale_, width_));
      Value offset = multiply(node_, divide(node_, width_, number(2)), subtract(node_, number(1), part));
      Value within = divide(node_, plus(node_, node_.convert(x, DType::F64), 0.5), wide(scale_));
      return node_.convert(plus(node_, add(node_, wide(offset), within), -0.5), DType::F32);
    }
    Value place = plus(node_, divide(node_, plus(node_, x, 0.5), scale_), -0.5);
    if (mode != "pytorch_half_pixel") return place;
    return node_.select(node_.compare("le", output_, number(1)), number(0), place);
  }

  Value wide(Value x) { return node_.convert(x, DType::F64); }

  Value rounds_up(Value ratio) {
    const std::string& mode = form_.nearest;
    if (mode == "floor") return index(0);
    Value up = mode == "ceil"                ? node_.compare("gt", ratio, number(0))
               : mode == "round_prefer_ceil" ? node_.compare("ge", ratio, number(0.5f))
                                             : node_.compare("gt", ratio, number(0.5f));
    return node_.convert(up, DType::I64);
  }

  Value gathered(Value at) {
    Value inside = smaller(node_, larger(node_, at, index(0)), plus_index(extent_, -1));
    return node_.op(Opcode::Gather, {x_, inside}, {{"axis", int64_t{axis_}}});
  }

  Value plus_index(Value x, int64_t offset) { return add(node_, x, index(offset)); }

  // Of a tap at a distance of `first` - ratio from the place, f64[output].
  Value weight(Value ratio, int64_t first) {
    Value x = node_.unary(Opcode::Abs, plus(node_, ratio, -static_cast<double>(first)));
    if (form_.mode == ResizeMode::Linear) return subtract(node_, node_.scalar(DType::F64, 1), x);
    double a = form_.cubic_a;
    auto inner = [&](Value t) { return plus(node_, times(node_, t, a + 2), -(a + 3)); };
    if (first == 0 || first == 1) return plus(node_, multiply(node_, multiply(node_, inner(x), x), x), 1);
    Value outer = plus(node_, times(node_, x, a), -5 * a);
    outer = plus(node_, multiply(node_, outer, x), 8 * a);
    outer = plus(node_, multiply(node_, outer, x), -4 * a);
    return node_.select(node_.compare("lt", x, node_.scalar(DType::F64, 2)), outer,
                        node_.scalar(DType::F64, 0));
  }

  Value weighted(Value base, Value ratio) {
    int64_t first = form_.mode == ResizeMode::Cubic ? -1 : 0, last = form_.mode == ResizeMode::Cubic ? 2 : 1;
    Values weights, places;
    Value sum;
    for (int64_t tap = first; tap <= last; ++tap) {
      Value at = plus_index(base, tap), each = weight(ratio, tap);
      if (form_.exclude_outside) {
        Value inside = both(node_, node_.compare("ge", at, index(0)), node_.compare("lt", at, extent_));
        each = node_.select(inside, each, node_.scalar(DType::F64, 0));
        sum = sum ? add(node_, sum, each) : each;
      }
      weights.push_back(each);
      places.push_back(at);
    }
    Value result;
    for (size_t t = 0; t < weights.size() && !node_.failed(); ++t) {
      Value each = form_.exclude_outside ? divide(node_, weights[t], sum) : weights[t];
      std::vector<Dim> dims(static_cast<size_t>(x_.rank() - axis_), Dim(1));
      dims[0] = each.type().dims[0];
      Value part = multiply(node_, gathered(places[t]), node_.reshape(node_.convert(each, x_.dtype()), dims));
      result = result ? add(node_, result, part) : part;
    }
    return result;
  }

  NodeContext& node_;
  Value x_;
  const ResizeForm& form_;
  int axis_;
  Value positions_, extent_, width_, output_, scale_, length_;
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
