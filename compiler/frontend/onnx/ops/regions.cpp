// RoiAlign and NonMaxSuppression.
#include "compiler/frontend/onnx/ops/regions.h"

#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/counted.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"

#include <algorithm>
#include <limits>

namespace firn::onnx {

namespace {

// Column `index` of the last dim, that dim removed.
Value column(NodeContext& node, Value x, int64_t index) {
  if (!x) return x;
  int last = x.rank() - 1;
  return node.squeeze(node.slice_dim(x, last, index, index + 1), last);
}

// --- RoiAlign: each bin of a region is sampled at a grid of points, interpolated bilinearly.

// The bins along one spatial dim.
struct RoiAxis {
  Value last;             // pixel, a scalar of i64
  Value start, bin, grid; // [R,1]: first position, extent of a bin, samples per bin
  Value bins;             // [1,bins]: 0, 1, ...
};

// One sample per bin, all [R,bins]: the two pixels around it, their weights, and whether it lies in the
// image.
struct RoiSample {
  Value low, high, low_weight, high_weight, inside;
};

struct RoiAlign {
  NodeContext& node;
  DType work;
  bool largest;
  Value table, batch; // pixels of all images [N*H*W, C]; first pixel of each region's image [R,1,1]
  Value width;        // width of an image, a scalar of i64
  RoiAxis y, x;

  Value number(double value) const { return node.scalar(work, value); }

  // Sample number `i` [R,1] of each bin.
  RoiSample sample(const RoiAxis& axis, Value i) const {
    Value last = node.convert(axis.last, work);
    Value fraction = divide(node, multiply(node, add(node, i, number(0.5)), axis.bin), axis.grid);
    Value at = add(node, add(node, axis.start, multiply(node, axis.bins, axis.bin)), fraction);
    RoiSample s;
    s.inside =
        both(node, node.compare("ge", at, number(-1)), node.compare("le", at, add(node, last, number(1))));
    Value clamped = smaller(node, larger(node, at, number(0)), last);
    Value base = node.unary(Opcode::Floor, clamped);
    s.high_weight = subtract(node, clamped, base);
    s.low_weight = subtract(node, number(1), s.high_weight);
    auto pixel = [&](Value position) {
      Value index = node.convert(position, DType::I64), zero = node.scalar_int(DType::I64, 0);
      return smaller(node, larger(node, index, zero), axis.last);
    };
    s.low = pixel(base);
    s.high = pixel(add(node, base, number(1)));
    return s;
  }

  // The value [R,bins_y,bins_x,C] of sample (i, j) of each bin; samples outside the image are 0.
  Value value(Value i, Value j) const {
    RoiSample v = sample(y, i), h = sample(x, j);
    Value inside = both(node, node.unsqueeze(v.inside, 2), node.unsqueeze(h.inside, 1));
    Value result;
    for (int corner = 0; corner < 4; ++corner) {
      Value row = node.unsqueeze(corner < 2 ? v.low : v.high, 2),
            col = node.unsqueeze(corner % 2 ? h.high : h.low, 1);
      Value row_weight = node.unsqueeze(corner < 2 ? v.low_weight : v.high_weight, 2);
      Value col_weight = node.unsqueeze(corner % 2 ? h.high_weight : h.low_weight, 1);
      Value index = add(node, add(node, multiply(node, row, width), col), batch);
      Value weight = node.select(inside, multiply(node, row_weight, col_weight), number(0));
      Value pixels = node.op(Opcode::Gather, {table, index}, {{"axis", int64_t{0}}});
      Value part = multiply(node, pixels, node.unsqueeze(weight, 3));
      result = !result ? part : largest ? larger(node, result, part) : add(node, result, part);
    }
    return result;
  }
};

RoiAxis make_axis(NodeContext& node, DType work, Value rois, int first, double scale, double offset,
                  int64_t bins, Value extent, int64_t ratio, bool half_pixel) {
  auto edge = [&](int index) {
    Value scaled = multiply(node, column(node, rois, index), node.scalar(work, scale));
    return node.unsqueeze(subtract(node, scaled, node.scalar(work, offset)), 1);
  };
  RoiAxis axis{subtract(node, extent, node.scalar_int(DType::I64, 1)), edge(first), {}, {}, {}};
  Value size = subtract(node, edge(first + 2), axis.start);
  if (!half_pixel) size = larger(node, size, node.scalar(work, 1));
  axis.bin = divide(node, size, node.scalar(work, static_cast<double>(bins)));
  axis.grid =
      ratio > 0 ? node.splat_like(axis.bin, static_cast<double>(ratio)) : node.unary(Opcode::Ceil, axis.bin);
  axis.bins = node.iota(work, {Dim(1), Dim(bins)}, 1);
  return axis;
}

// All samples of each bin, one after the other; regions with fewer samples skip the last ones.
Value pool_samples(NodeContext& node, const RoiAlign& align, const std::vector<Dim>& dims) {
  DType work = align.work;
  Value one = node.scalar(work, 1),
        count = larger(node, multiply(node, align.y.grid, align.x.grid), node.scalar(work, 0));
  Value max = node.reduce(Opcode::Maximum, count, {0, 1}, false);
  if (!max) return {};
  Value initial = node.splat(work, dims, align.largest ? -std::numeric_limits<double>::infinity() : 0);
  auto condition = [&](const Values& p) { return Values{node.compare("lt", p[0], max)}; };
  auto body = [&](const Values& p) {
    Value width = larger(node, align.x.grid, one);
    Value i = node.unary(Opcode::Floor, divide(node, p[0], width));
    Value j = subtract(node, p[0], multiply(node, i, width));
    Value value = align.value(i, j);
    Value combined = align.largest ? larger(node, p[1], value) : add(node, p[1], value);
    Value valid = node.unsqueeze(node.unsqueeze(node.compare("lt", p[0], count), 2), 3);
    return Values{add(node, p[0], one), node.select(valid, combined, p[1])};
  };
  Instruction* loop = node.while_loop({node.scalar(work, 0), initial}, condition, body);
  if (!loop) return {};
  Value pooled = loop->result(1);
  Value shaped = node.unsqueeze(node.unsqueeze(count, 2), 3);
  if (!align.largest) return divide(node, pooled, larger(node, shaped, one));
  return node.select(node.compare("gt", shaped, node.scalar(work, 0)), pooled, node.scalar(work, 0));
}

// --- NonMaxSuppression.

// Lower and upper corners of boxes [...,4], given by two corners in any order or by centre and size.
struct Corners {
  Value low_y, low_x, high_y, high_x;
};

Corners corners(NodeContext& node, Value boxes, bool centered) {
  Value a = column(node, boxes, 0), b = column(node, boxes, 1), c = column(node, boxes, 2),
        d = column(node, boxes, 3);
  if (!centered) return {smaller(node, a, c), smaller(node, b, d), larger(node, a, c), larger(node, b, d)};
  Value half = node.scalar(boxes.dtype(), 0.5);
  Value width = multiply(node, c, half), height = multiply(node, d, half);
  return {subtract(node, b, height), subtract(node, a, width), add(node, b, height), add(node, a, width)};
}

// Whether boxes `one` and `other` overlap by more than the threshold, as intersection over union.
Value overlap(NodeContext& node, const Corners& one, const Corners& other, Value threshold) {
  Value zero = node.scalar(one.low_y.dtype(), 0);
  Value height =
      subtract(node, smaller(node, one.high_y, other.high_y), larger(node, one.low_y, other.low_y));
  Value width = subtract(node, smaller(node, one.high_x, other.high_x), larger(node, one.low_x, other.low_x));
  Value shared = multiply(node, larger(node, height, zero), larger(node, width, zero));
  auto area = [&](const Corners& c) {
    return multiply(node, subtract(node, c.high_y, c.low_y), subtract(node, c.high_x, c.low_x));
  };
  Value joint = subtract(node, add(node, area(one), area(other)), shared);
  // Empty boxes share nothing: 0 / 0 compares false.
  return both(node, node.compare("gt", shared, zero),
              node.compare("gt", divide(node, shared, joint), threshold));
}

// Element 0 of a scalar input that may be a vector of one element, or a fallback.
Value scalar_input(NodeContext& node, int input, DType dtype, double fallback) {
  if (!node.has_input(input)) return node.scalar(dtype, fallback);
  if (!node.check_scalar(input)) return {};
  return node.reshape_to(node.input(input), {});
}

// Whether a dim may have no pixels. Counted dims pass, although a run may count none: values read from them
// are undefined then.
bool may_be_empty(const Dim& dim) {
  return dim.extent.upper_bound() < 1 || (!dim.counted && dim.extent.lower_bound() < 1);
}

} // namespace

bool check_image(NodeContext& node, int64_t max) {
  if (!node.check_rank(0, 4)) return false;
  for (size_t d : {2, 3}) {
    const Dim& dim = node.input(0).type().dims[d];
    bool fits = !may_be_empty(dim) && (max == INT64_MAX || dim.extent.upper_bound() <= max);
    if (!node.check(fits, node.input_label(0) + " is " + node.input(0).type().to_string() +
                              ", an image without pixels or too large"))
      return false;
  }
  return true;
}

void import_roi_align(NodeContext& node) {
  Value image = node.input(0), rois = node.input(1);
  if (!check_image(node) || !node.check_rank(1, 2) || !node.check_dims(1, {-1, 4})) return;
  const std::vector<Dim> dims = image.type().dims;
  bool half_pixel =
      node.opset() >= 16 && node.choice_attribute("coordinate_transformation_mode", "half_pixel",
                                                  {"half_pixel", "output_half_pixel"}) == "half_pixel";
  std::string mode = node.choice_attribute("mode", "avg", {"avg", "max"});
  int64_t rows = node.int_attribute("output_height", 1), columns = node.int_attribute("output_width", 1);
  int64_t ratio = node.int_attribute("sampling_ratio", 0);
  double scale = node.float_attribute("spatial_scale", 1);
  bool sane = rows > 0 && columns > 0 && rows < 65536 && columns < 65536 && ratio >= 0 && ratio < 1024;
  if (node.failed() || !node.check(sane, "output size or sampling_ratio is out of range")) return;
  DType work = image.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Dim regions = rois.type().dims[0], pixels(0);
  if (auto product = node.product({dims[0], dims[2], dims[3]})) pixels = *product;
  Value table = node.reshape(node.transpose(node.convert(image, work), {0, 2, 3, 1}), {pixels, dims[1]});
  Value images = node.dim_size(image, 0), zero = node.scalar_int(DType::I64, 0),
        one = node.scalar_int(DType::I64, 1);
  Value batch = larger(node, input_with_extents(node, 2, {regions}), zero);
  batch = smaller(node, batch, subtract(node, images, one));
  Value height = node.dim_size(image, 2), width = node.dim_size(image, 3);
  batch = multiply(node, batch, multiply(node, height, width));
  double offset = half_pixel ? 0.5 : 0;
  Value wide = node.convert(rois, work);
  RoiAlign align{node,
                 work,
                 mode == "max",
                 table,
                 node.reshape(batch, {regions, Dim(1), Dim(1)}),
                 width,
                 make_axis(node, work, wide, 1, scale, offset, rows, height, ratio, half_pixel),
                 make_axis(node, work, wide, 0, scale, offset, columns, width, ratio, half_pixel)};
  if (node.failed()) return;
  Value pooled = pool_samples(node, align, {regions, Dim(rows), Dim(columns), dims[1]});
  node.set_output(0, node.convert(node.transpose(pooled, {0, 3, 1, 2}), image.dtype()));
}

// Boxes are visited by descending score. A box is kept if its score passes, its class has room and no kept
// box of higher score overlaps it. non_zero finds the kept boxes by batch, class and score.
void import_non_max_suppression(NodeContext& node) {
  Value boxes = node.input(0), scores = node.input(1);
  if (!node.check_rank(0, 3) || !node.check_rank(1, 3)) return;
  const std::vector<Dim> dims = scores.type().dims; // batches, classes, boxes
  auto flat = node.product({dims[1], dims[2]}), all_boxes = node.product(dims);
  if (!flat || !all_boxes) return;
  boxes = input_with_extents(node, 0, {dims[0], dims[2], Dim(4)});
  if (!boxes) return;
  bool centered = node.flag_attribute("center_point_box", false);
  Value limit = node.has_input(2) ? scalar_input(node, 2, DType::I64, 0) : node.scalar_int(DType::I64, 0);
  Value iou_threshold = scalar_input(node, 3, DType::F32, 0);
  if (!limit || !iou_threshold || node.failed()) return;

  // Scores and their boxes by descending score; a stable sort of the negated scores keeps ties in order.
  Instruction* sorted =
      node.sort({node.unary(Opcode::Negate, scores), node.iota(DType::I64, dims, 2)}, 2, false);
  if (!sorted) return;
  Value order = sorted->result(1);
  Value passes = node.splat(DType::Bool, dims, 1);
  if (node.has_input(4)) {
    Value threshold = scalar_input(node, 4, DType::F32, 0);
    passes = node.compare("gt", node.unary(Opcode::Negate, sorted->result(0)), threshold);
  }
  Value ranked = node.op(Opcode::GatherND, {boxes, node.unsqueeze(node.reshape(order, {dims[0], *flat}), 2)},
                         {{"batch_dims", int64_t{1}}});
  ranked = node.reshape(ranked, {dims[0], dims[1], dims[2], Dim(4)});
  Corners all = corners(node, ranked, centered);
  if (node.failed()) return;

  Value one = node.scalar_int(DType::I64, 1), last = node.dim_size(scores, 2);
  auto condition = [&](const Values& p) { return Values{node.compare("lt", p[0], last)}; };
  auto body = [&](const Values& p) {
    auto at = [&](Value x) {
      return node.unsqueeze(node.op(Opcode::Gather, {x, p[0]}, {{"axis", int64_t{2}}}), 2);
    };
    Corners current{at(all.low_y), at(all.low_x), at(all.high_y), at(all.high_x)};
    Value clashes = both(node, overlap(node, all, current, iou_threshold), p[1]);
    Value free = node.unary(Opcode::Not, node.reduce(Opcode::Or, clashes, {2}, true));
    Value kept = node.reduce(Opcode::Add, node.convert(p[1], DType::I64), {2}, true);
    Value keep = both(node, both(node, at(passes), free), node.compare("lt", kept, limit));
    Value here = node.compare("eq", node.iota(DType::I64, dims, 2), p[0]);
    return Values{add(node, p[0], one), node.select(here, keep, p[1])};
  };
  Instruction* loop =
      node.while_loop({node.scalar_int(DType::I64, 0), node.splat(DType::Bool, dims, 0)}, condition, body);
  if (!loop) return;
  int64_t max = all_boxes->extent.upper_bound();
  auto groups = node.product({dims[0], dims[1]});
  if (auto known = node.constant_ints(limit); groups && known && groups->extent.upper_bound() < INT32_MAX)
    max = std::min(max, groups->extent.upper_bound() * std::clamp<int64_t>((*known)[0], 0, INT32_MAX));
  if (max == 0) return node.set_output(0, node.splat(DType::I64, {Dim(0), Dim(3)}, 0));
  // [<=n, 3]: batch, class, rank
  Value positions = node.transpose(non_zero(node, loop->result(1), max), {1, 0});
  if (!positions) return;
  Value box = node.op(Opcode::GatherND, {order, positions}, {{"batch_dims", int64_t{0}}});
  node.set_output(0, node.concatenate({node.slice_dim(positions, 1, 0, 2), node.unsqueeze(box, 1)}, 1));
}

} // namespace firn::onnx
