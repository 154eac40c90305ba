// Interpolated sampling as sums of gathered pixels times weights, one per corner of the cell around each
// point.
#include "compiler/frontend/onnx/ops/sampling.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/ops/resize_places.h"

namespace firn::onnx {

namespace {

// One tap of one dim: the pixel's index and its weight, both [B,P]; a null weight is 1.
struct Tap {
  Value index, weight;
};

constexpr double kCubic = -0.75; // the parameter of Keys' kernel

struct Axis {
  NodeContext& node;
  const Sampling& sampling;
  Value last;      // pixel, a scalar of i64
  Value low, high; // borders for reflection, scalars of the positions' dtype

  Axis(NodeContext& context, Value size, DType positions, const Sampling& form)
      : node(context), sampling(form), last(subtract(node, size, node.scalar_int(DType::I64, 1))),
        low(node.scalar(positions, form.align_corners ? 0 : -0.5)),
        high(plus(node, node.convert(last, positions), form.align_corners ? 0 : 0.5)) {}

  Value number(Value like, double value) const { return like ? node.scalar(like.dtype(), value) : like; }

  // x mirrored at the borders until it lies between them, which is 0 for a single pixel with aligned corners.
  Value reflect(Value x) const {
    Value range = subtract(node, high, low);
    // Distance beyond the lower border; each whole range in it flips the border from which the rest counts.
    Value distance = node.unary(Opcode::Abs, subtract(node, x, low));
    Value flips = node.unary(Opcode::Floor, divide(node, distance, range));
    Value rest = subtract(node, distance, multiply(node, flips, range));
    Value odd = node.compare("ne", node.binary(Opcode::Remainder, flips, number(x, 2)), number(x, 0));
    Value inside = node.select(odd, subtract(node, high, rest), add(node, rest, low));
    if (!sampling.align_corners) return inside;
    return node.select(node.compare("gt", range, number(x, 0)), inside, number(x, 0));
  }

  Value outside(Value x) const {
    return node.binary(Opcode::Or, node.compare("lt", x, low), node.compare("gt", x, high));
  }

  // Points outside are moved inside before the cell around them is chosen. A cubic cell at a border is not
  // moved: only its taps are clamped, as in PyTorch.
  Value bring_inside(Value x) const {
    if (sampling.edge == EdgeMode::Zeros ||
        (sampling.edge == EdgeMode::Border && sampling.interpolation == Interpolation::Cubic))
      return x;
    Value inside = sampling.edge == EdgeMode::Reflection
                       ? reflect(x)
                       : smaller(node, larger(node, x, number(x, 0)), node.convert(last, x.dtype()));
    return node.select(outside(x), inside, x);
  }

  // The tap at the whole-numbered position `at`.
  Tap tap(Value at, Value weight) const {
    if (sampling.edge == EdgeMode::Reflection) at = node.select(outside(at), reflect(at), at);
    Value index = node.convert(at, DType::I64);
    Value clamped = smaller(node, larger(node, index, node.scalar_int(DType::I64, 0)), last);
    if (sampling.edge == EdgeMode::Zeros) {
      Value one = number(at, 1);
      weight = node.select(node.compare("eq", clamped, index), weight ? weight : one, number(at, 0));
    }
    return {clamped, weight};
  }

  Value near_weight(Value d) const { return near_cubic_weight(Term(node, d), kCubic).value(); }
  Value far_weight(Value d) const { return far_cubic_weight(Term(node, d), kCubic).value(); }

  std::vector<Tap> taps(Value x) const {
    if (sampling.interpolation == Interpolation::Nearest)
      return {tap(bring_inside(node.unary(Opcode::RoundNearestEven, x)), {})};
    x = bring_inside(x);
    Value base = node.unary(Opcode::Floor, x);
    Value t = subtract(node, x, base);
    if (!t) return {};
    Value one = number(t, 1), two = number(t, 2);
    Value rest = subtract(node, one, t), next = add(node, base, one);
    if (sampling.interpolation == Interpolation::Linear) return {tap(base, rest), tap(next, t)};
    return {tap(subtract(node, base, one), far_weight(add(node, t, one))), tap(base, near_weight(t)),
            tap(next, near_weight(rest)), tap(add(node, base, two), far_weight(subtract(node, two, t)))};
  }
};

} // namespace

Value sample_image(NodeContext& node, Value image, const Values& points, const Sampling& sampling) {
  if (!image || node.failed()) return {};
  DType result = image.dtype(), work = points[0].dtype();
  if (sampling.interpolation == Interpolation::Nearest && sampling.edge != EdgeMode::Zeros) work = result;
  const std::vector<Dim> dims = image.type().dims;
  auto pixels = node.product({dims.begin() + 2, dims.end()});
  if (!pixels) return {};
  Value table = node.transpose(node.reshape(image, {dims[0], dims[1], *pixels}), {0, 2, 1});
  table = node.convert(table, work);

  std::vector<std::vector<Tap>> taps;
  Values sizes;
  for (size_t i = 0; i < points.size(); ++i) {
    sizes.push_back(node.dim_size(image, static_cast<int>(i) + 2));
    if (node.failed() || !points[i]) return {};
    taps.push_back(Axis(node, sizes[i], points[i].dtype(), sampling).taps(points[i]));
    if (node.failed()) return {};
  }
  // All combinations of taps, the last dim's fastest.
  std::vector<size_t> choice(points.size(), 0);
  Value sum;
  while (true) {
    Value index, weight;
    for (size_t i = 0; i < points.size(); ++i) {
      const Tap& tap = taps[i][choice[i]];
      index = index ? add(node, multiply(node, index, sizes[i]), tap.index) : tap.index;
      if (tap.weight) weight = weight ? multiply(node, weight, tap.weight) : tap.weight;
    }
    Value part = node.op(Opcode::GatherND, {table, node.unsqueeze(index, 2)}, {{"batch_dims", int64_t{1}}});
    if (weight) part = multiply(node, part, node.convert(node.unsqueeze(weight, 2), work));
    sum = sum ? add(node, sum, part) : part;
    if (!sum) return {};
    size_t i = points.size();
    while (i > 0 && ++choice[i - 1] == taps[i - 1].size()) choice[--i] = 0;
    if (i == 0) break;
  }
  return node.convert(sum, result);
}

} // namespace firn::onnx
