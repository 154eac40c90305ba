// MaxRoiPool: the largest pixel in each bin of a region, whose edges are whole pixels.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/ops/regions.h"

#include <limits>

namespace firn::onnx {

namespace {

// The number of pixels in a row or column.
struct Pixels {
  Value whole, number; // i64, and in the type of bins
};

// Bins along one spatial dim, in whole pixels as f32 or f64: first pixel and number of pixels, [R,bins].
struct Bins {
  Value first, count;
};

Bins make_bins(NodeContext& node, Value low, Value high, int64_t bins, const Pixels& pixels) {
  DType work = low.dtype();
  Value size = larger(node, plus(node, subtract(node, high, low), 1), node.scalar(work, 1));
  Value bin = times(node, size, 1 / static_cast<double>(bins));
  Value index = node.iota(work, {Dim(1), Dim(bins)}, 1);
  auto inside = [&](Value edge) {
    return smaller(node, larger(node, add(node, edge, low), node.scalar(work, 0)), pixels.number);
  };
  Value first = inside(node.unary(Opcode::Floor, multiply(node, index, bin)));
  Value end = inside(node.unary(Opcode::Ceil, multiply(node, plus(node, index, 1), bin)));
  return {first, subtract(node, end, first)};
}

// Nearest whole number, halves away from zero.
Value rounded(NodeContext& node, Value x) {
  Value magnitude = node.unary(Opcode::Floor, plus(node, node.unary(Opcode::Abs, x), 0.5));
  return multiply(node, magnitude, node.unary(Opcode::Sign, x));
}

// [R,rows,columns,C] from a table of pixels [N*H*W,C]. Steps through the pixels of all bins at once, as often
// as the largest bin has pixels. Steps beyond a bin read some pixel of the image and drop it.
Value pool(NodeContext& node, Value table, Value image, const Pixels& height, const Pixels& width,
           const Bins& y, const Bins& x, const std::vector<Dim>& dims) {
  DType work = y.first.dtype();
  auto raised = [&](Value value, int dim) { return node.unsqueeze(value, dim); };
  Value rows = raised(y.first, 2), columns = raised(x.first, 1); // [R,rows,1] and [R,1,columns]
  Value heights = raised(y.count, 2), widths = raised(x.count, 1);
  auto max = [&](Value count) {
    return larger(node, node.reduce(Opcode::Maximum, count, {0, 1}, false), node.scalar(work, 0));
  };
  Value across = max(x.count), total = multiply(node, max(y.count), across);
  Value lowest = node.splat(table.dtype(), dims, -std::numeric_limits<double>::infinity());
  if (!total) return {};
  auto condition = [&](const Values& p) { return Values{node.compare("lt", p[0], total)}; };
  auto body = [&](const Values& p) {
    Value i = node.unary(Opcode::Floor, divide(node, p[0], across));
    Value j = subtract(node, p[0], multiply(node, i, across));
    auto inside = [&](Value position, const Pixels& pixels) {
      return smaller(node, position, plus(node, pixels.number, -1));
    };
    Value row = inside(add(node, rows, i), height), column = inside(add(node, columns, j), width);
    Value pixel = add(node, multiply(node, row, width.number), column);
    Value index = add(node, node.convert(pixel, DType::I64), image);
    Value picked = node.op(Opcode::Gather, {table, index}, {{"axis", int64_t{0}}});
    Value valid = both(node, node.compare("lt", i, heights), node.compare("lt", j, widths));
    Value best = node.select(raised(valid, 3), larger(node, p[1], picked), p[1]);
    return Values{plus(node, p[0], 1), best};
  };
  Instruction* loop = node.while_loop({node.scalar(work, 0), lowest}, condition, body);
  if (!loop) return {};
  Value none = node.scalar(work, 0);
  Value found = both(node, node.compare("gt", heights, none), node.compare("gt", widths, none));
  return node.select(raised(found, 3), loop->result(1), node.scalar(table.dtype(), 0));
}

} // namespace

void import_max_roi_pool(NodeContext& node) {
  Value image = node.input(0), rois = node.input(1);
  if (!check_image(node, 1 << 20) || !node.check_dims(1, {-1, 5})) return;
  Ints shape = node.required_ints("pooled_shape");
  double scale = node.float_attribute("spatial_scale", 1);
  if (node.failed()) return;
  bool sane = shape.size() == 2 && shape[0] > 0 && shape[1] > 0 && shape[0] < 65536 && shape[1] < 65536;
  if (!node.check(sane, "attribute pooled_shape is out of range")) return;
  const std::vector<Dim> dims = image.type().dims;
  auto pixels_of = [&](const Dim& dim) {
    Value whole = extent_value(node, dim);
    return Pixels{whole, node.convert(whole, DType::F64)};
  };
  Pixels height = pixels_of(dims[2]), width = pixels_of(dims[3]);
  Dim regions = rois.type().dims[0];
  auto pixels = node.product({dims[0], dims[2], dims[3]});
  if (!pixels) return;
  // Positions of pixels need more digits than f32 has in large images.
  Value wide = node.convert(rois, DType::F64);
  auto edge = [&](int64_t column) {
    return rounded(node, times(node, node.slice_dim(wide, 1, column, column + 1), scale));
  };
  Bins x = make_bins(node, edge(1), edge(3), shape[1], width);
  Bins y = make_bins(node, edge(2), edge(4), shape[0], height);
  Value last = subtract(node, node.dim_size(image, 0), node.scalar_int(DType::I64, 1));
  Value batch = node.convert(node.slice_dim(wide, 1, 0, 1), DType::I64);
  batch = smaller(node, larger(node, batch, node.scalar_int(DType::I64, 0)), last);
  batch = multiply(node, batch, multiply(node, height.whole, width.whole));
  Value table = node.reshape(node.transpose(image, {0, 2, 3, 1}), {*pixels, dims[1]});
  if (node.failed()) return;
  Value pooled = pool(node, table, node.reshape(batch, {regions, Dim(1), Dim(1)}), height, width, y, x,
                      {regions, Dim(shape[0]), Dim(shape[1]), dims[1]});
  node.set_output(0, node.transpose(pooled, {0, 3, 1, 2}));
}

} // namespace firn::onnx
