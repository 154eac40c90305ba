// com.microsoft.CropAndResize: regions of images, each resized to one size. Pixels are rows of a table,
// gathered by positions that are computed per region, row and column. Samples outside of the image are a
// constant.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/ops/regions.h"

namespace firn::onnx {

namespace {

// Positions along one spatial dim, [R,n] in f32: where samples lie, and whether that is within the image.
struct Samples {
  Value position, inside;
};

// `last`: the last pixel, f64.
Samples make_samples(NodeContext& node, Value low, Value high, int64_t count, Value last) {
  auto narrow = [&](Value value) { return node.convert(value, DType::F32); };
  Value position;
  if (count > 1) {
    Value share = divide(node, last, node.scalar(DType::F64, static_cast<double>(count - 1)));
    Value step = multiply(node, subtract(node, high, low), narrow(share));
    Value index = node.iota(DType::F32, {Dim(1), Dim(count)}, 1);
    position = add(node, multiply(node, low, narrow(last)), multiply(node, index, step));
  } else {
    position = multiply(node, add(node, low, high), narrow(times(node, last, 0.5)));
  }
  Value inside = both(node, node.compare("ge", position, node.scalar(DType::F32, 0)),
                      node.compare("le", position, narrow(last)));
  return {position, inside};
}

// Whole positions as i64, clamped to the image.
Value clamped(NodeContext& node, Value position, Value last) {
  Value bounded = larger(node, position, node.scalar(DType::F32, 0));
  bounded = smaller(node, bounded, node.convert(last, DType::F32));
  return node.convert(bounded, DType::I64);
}

// The pixels [R,rows,columns,C] at positions [R,rows] and [R,columns] of the images [R,1,1].
Value pixels_at(NodeContext& node, Value table, Value image, Value row, Value column, Value width) {
  Value line = multiply(node, node.unsqueeze(row, 2), width);
  Value index = add(node, add(node, image, line), node.unsqueeze(column, 1));
  return node.op(Opcode::Gather, {table, index}, {{"axis", int64_t{0}}});
}

Value interpolated(NodeContext& node, Value from, Value to, Value share) {
  return add(node, from, multiply(node, subtract(node, to, from), share));
}

} // namespace

void import_crop_and_resize(NodeContext& node) {
  Value image = node.input(0), regions = node.input(1);
  std::string mode = node.choice_attribute("mode", "bilinear", {"bilinear", "nearest"});
  double outside = node.float_attribute("extrapolation_value", 0);
  auto size = node.required_constant_ints(3);
  constexpr int64_t kMax = 1 << 16;
  if (!size || !check_image(node, kMax) || !node.check_dims(1, {-1, 4})) return;
  const std::vector<Dim> dims = image.type().dims;
  bool sane =
      size->size() == 2 && (*size)[0] > 0 && (*size)[1] > 0 && (*size)[0] <= kMax && (*size)[1] <= kMax;
  if (!node.check(sane, "the crops are empty or too large")) return;
  Value height = extent_value(node, dims[2]), width = extent_value(node, dims[3]);
  Value bottom_pixel = node.convert(plus(node, height, -1), DType::F64),
        right_pixel = node.convert(plus(node, width, -1), DType::F64);
  Dim count = regions.type().dims[0];
  auto pixels = node.product({dims[0], dims[2], dims[3]});
  Value batch = input_with_extents(node, 2, {count});
  if (!pixels || !batch) return;
  Value edges = node.convert(regions, DType::F32);
  auto edge = [&](int64_t column) { return node.slice_dim(edges, 1, column, column + 1); };
  Samples y = make_samples(node, edge(0), edge(2), (*size)[0], bottom_pixel);
  Samples x = make_samples(node, edge(1), edge(3), (*size)[1], right_pixel);
  Value last = subtract(node, node.dim_size(image, 0), node.scalar_int(DType::I64, 1));
  Value number =
      smaller(node, larger(node, node.convert(batch, DType::I64), node.scalar_int(DType::I64, 0)), last);
  Value first = node.reshape(multiply(node, number, multiply(node, height, width)), {count, Dim(1), Dim(1)});
  Value table = node.reshape(node.transpose(image, {0, 2, 3, 1}), {*pixels, dims[1]});
  if (node.failed()) return;
  auto at = [&](Value row, Value column) {
    return pixels_at(node, table, first, clamped(node, row, bottom_pixel), clamped(node, column, right_pixel),
                     width);
  };
  Value picked;
  if (mode == "nearest") {
    auto rounded = [&](Value v) { return node.unary(Opcode::Floor, plus(node, v, 0.5)); };
    picked = at(rounded(y.position), rounded(x.position));
  } else {
    Value top = node.unary(Opcode::Floor, y.position), left = node.unary(Opcode::Floor, x.position);
    Value bottom = node.unary(Opcode::Ceil, y.position), right = node.unary(Opcode::Ceil, x.position);
    auto share = [&](Value v, Value low, int dim) {
      return node.convert(node.unsqueeze(node.unsqueeze(subtract(node, v, low), dim), 3), table.dtype());
    };
    Value across = share(x.position, left, 1), down = share(y.position, top, 2);
    picked = interpolated(node, interpolated(node, at(top, left), at(top, right), across),
                          interpolated(node, at(bottom, left), at(bottom, right), across), down);
  }
  Value inside = both(node, node.unsqueeze(y.inside, 2), node.unsqueeze(x.inside, 1));
  if (!picked || !inside) return;
  Value y4 = node.select(node.unsqueeze(inside, 3), picked, node.scalar(table.dtype(), outside));
  node.set_output(0, node.transpose(y4, {0, 3, 1, 2}));
}

} // namespace firn::onnx
