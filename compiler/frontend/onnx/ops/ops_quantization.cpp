// Importers of quantisation: linear quantise and dequantise per tensor, axis or block, and products of
// integers. Products are written over i32 with zero points subtracted first, so that padding is zero.
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/convolution_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/quantization_operators.h"

#include <algorithm>
#include <cmath>

namespace firn::onnx {

namespace {

struct Granularity {
  Value x;          // the quantised tensor
  int64_t axis = 1; // the attribute, unchecked
  int64_t block = 0;
};

Granularity read_granularity(NodeContext& node) {
  Granularity by{node.input(0), node.int_attribute("axis", 1), node.int_attribute("block_size", 0)};
  node.check(by.block >= 0, "attribute block_size is " + std::to_string(by.block) + ", wants 0 or more");
  return by;
}

// The parameter of each block along the axis, whose extent must be static.
Value read_blocks(NodeContext& node, Value parameter, const Granularity& by, int axis) {
  auto extent = node.static_dim(by.x, axis, "the quantised input");
  if (!extent) return {};
  std::vector<Dim> blocks = by.x.type().dims;
  blocks[static_cast<size_t>(axis)] = Dim((*extent + by.block - 1) / by.block);
  std::string found = parameter.type().to_string();
  parameter = with_extents(node, parameter, blocks, /*stretches=*/true);
  if (!parameter ||
      !node.check(parameter.type().dims[static_cast<size_t>(axis)] == blocks[static_cast<size_t>(axis)] &&
                      broadcast_dims(parameter.type().dims, blocks) == blocks,
                  "scale is " + found + " for blocks of " + std::to_string(by.block) + " of " +
                      by.x.type().to_string() + ", wants " +
                      Type::tensor(parameter.dtype(), blocks).to_string()))
    return {};
  return parameter;
}

// A scale or zero point as quantize and dequantize take it: one element, one per index of the axis, or one
// per block. Attributes that say so are set.
Value read_parameter(NodeContext& node, Value parameter, const Granularity& by, Attributes& attributes) {
  if (!parameter) return {};
  const Type type = parameter.type();
  if (type.is_static() && type.num_elements() == 1 && type.rank() <= 1) return node.reshape_to(parameter, {});
  auto axis = node.axis(by.axis, by.x.rank());
  if (!axis) return {};
  attributes.set("axis", int64_t{*axis});
  if (by.block > 0) {
    attributes.set("block", by.block);
    if (node.check(type.rank() == by.x.rank(),
                   "scale is " + type.to_string() + ", wants the rank of " + by.x.type().to_string()))
      return read_blocks(node, parameter, by, *axis);
    return {};
  }
  if (!node.check(type.rank() == 1,
                  "scale or zero point is " + type.to_string() + ", wants a scalar or a vector"))
    return {};
  const Dim extent = by.x.type().dims[static_cast<size_t>(*axis)];
  parameter = with_extents(node, parameter, {extent}, /*stretches=*/true);
  if (!parameter ||
      !node.check(parameter.type().dims[0] == extent,
                  "scale or zero point is " + type.to_string() + ", wants one element per index of axis " +
                      std::to_string(*axis) + " of " + by.x.type().to_string()))
    return {};
  return parameter;
}

bool is_zero(NodeContext& node, Value value) {
  if (!value) return true;
  while (value.def->is(Opcode::Reshape) || value.def->is(Opcode::BroadcastInDim))
    value = value.def->operand(0);
  auto elements = node.constant_doubles(value);
  if (!elements) return false;
  for (double element : *elements)
    if (element != 0) return false;
  return true;
}

} // namespace

Value repeated(NodeContext& node, Value x, int axis, int64_t count, int64_t extent) {
  auto each = node.static_dim(x, axis, "what is repeated");
  if (!each) return {};
  std::vector<Dim> joined = x.type().dims, apart = joined;
  apart.insert(apart.begin() + axis + 1, Dim(count));
  joined[static_cast<size_t>(axis)] = Dim(*each * count);
  Value all = node.reshape(node.broadcast_to(node.unsqueeze(x, axis + 1), apart), joined);
  return *each * count == extent ? all : node.slice_dim(all, axis, 0, extent);
}

namespace {

// x quantised or dequantised. A zero point that is zero is left out.
Value with_parameters(NodeContext& node, Opcode opcode, Value x, Value scale, Value zero_point,
                      Attributes attributes) {
  if (!x || !scale) return {};
  Values operands{x, scale};
  if (!is_zero(node, zero_point)) operands.push_back(zero_point);
  return node.op(opcode, std::move(operands), std::move(attributes));
}

} // namespace

Value quantize(NodeContext& node, Value x, Value scale, Value zero_point, DType dtype) {
  Attributes attributes{{"to", dtype}};
  if (is_float(dtype)) attributes.set("saturate", true);
  return with_parameters(node, Opcode::Quantize, x, scale, zero_point, std::move(attributes));
}

Value quantize_scaled(NodeContext& node, Value scaled, Value zero_point, DType dtype) {
  if (!scaled) return {};
  // A zero point of fewer dims is aligned at the last one.
  if (zero_point && zero_point.rank() > 0 && zero_point.rank() < scaled.rank()) {
    std::vector<Dim> dims = zero_point.type().dims;
    dims.insert(dims.begin(), static_cast<size_t>(scaled.rank() - zero_point.rank()), Dim(1));
    zero_point = node.reshape(zero_point, std::move(dims));
  }
  return quantize(node, scaled, node.scalar(scaled.dtype(), 1), zero_point, dtype);
}

Value dequantize(NodeContext& node, Value x, Value scale, Value zero_point) {
  return with_parameters(node, Opcode::Dequantize, x, scale, zero_point, {});
}

// Division runs in the dtype that `precision` names, or the scale's, at least f16.
void import_quantize(NodeContext& node) {
  Granularity by = read_granularity(node);
  Attributes attributes;
  Value scale = read_parameter(node, node.input(1), by, attributes),
        zero_point = read_parameter(node, node.input(2), by, attributes);
  auto precision = node.dtype_attribute("precision"), wanted = node.dtype_attribute("output_dtype");
  if (!scale || node.failed()) return;
  DType dtype = node.has_input(2) ? node.input(2).dtype() : wanted.value_or(DType::U8);
  DType work = precision.value_or(scale.dtype());
  if (!is_float(work) || bit_width(work) < 16) work = DType::F32;
  if (!node.check(bit_width(dtype) <= 16 && dtype != DType::Bool,
                  "the quantised dtype is " + std::string(dtype_name(dtype)) + ", wants at most 16 bits"))
    return;
  attributes.set("to", dtype);
  if (is_float(dtype) && node.flag_attribute("saturate", true)) attributes.set("saturate", true);
  node.set_output(0, with_parameters(node, Opcode::Quantize, node.convert(by.x, work),
                                     node.convert(scale, work), zero_point, std::move(attributes)));
}

Value centered(NodeContext& node, Value x, Value zero_point) {
  DType work = is_float(x.dtype()) ? DType::F32 : DType::I32;
  Value wide = node.convert(x, work);
  if (is_zero(node, zero_point)) return wide;
  return node.binary(Opcode::Subtract, wide, node.convert(zero_point, work));
}

void import_dequantize(NodeContext& node) {
  Granularity by = read_granularity(node);
  Attributes attributes;
  Value scale = read_parameter(node, node.input(1), by, attributes),
        zero_point = read_parameter(node, node.input(2), by, attributes);
  auto wanted = node.dtype_attribute("output_dtype");
  if (!scale || node.failed()) return;
  DType result = wanted.value_or(bit_width(scale.dtype()) < 16 ? DType::F32 : scale.dtype());
  DType work = bit_width(result) < 32 ? DType::F32 : result;
  Value product = with_parameters(node, Opcode::Dequantize, by.x, node.convert(scale, work), zero_point,
                                  std::move(attributes));
  node.set_output(0, node.convert(product, result));
}

// scale = (max - min) / 255 over x and 0, zero point = -min / scale.
DynamicQuantization quantize_dynamically(NodeContext& node, Value x) {
  std::vector<int> dims;
  for (int i = 0; i < x.rank(); ++i) dims.push_back(i);
  Value zero = node.scalar(x.dtype(), 0), one = node.scalar(x.dtype(), 1);
  Value high = node.binary(Opcode::Maximum, node.reduce(Opcode::Maximum, x, dims, false), zero);
  Value low = node.binary(Opcode::Minimum, node.reduce(Opcode::Minimum, x, dims, false), zero);
  Value scale =
      node.binary(Opcode::Divide, node.binary(Opcode::Subtract, high, low), node.scalar(x.dtype(), 255));
  if (!scale) return {};
  // Any scale will do if all of x is zero.
  scale = node.select(node.compare("eq", scale, zero), one, scale);
  Value offset = node.binary(Opcode::Divide, node.unary(Opcode::Negate, low), scale);
  Value zero_point = quantize_scaled(node, offset, {}, DType::U8);
  return {quantize(node, x, scale, zero_point, DType::U8), scale, zero_point};
}

// A factor's parameter in a shape that broadcasts to it. It is one element, or one per index of the dim that
// is `from_end` from the end (1 or 2), or has the factor's shape with 1 for the other one of these dims.
static Value along_dim(NodeContext& node, Value parameter, Value factor, int from_end) {
  if (!parameter || !factor || node.failed()) return {};
  const Type type = parameter.type();
  if (type.is_static() && type.num_elements() == 1) return node.reshape_to(parameter, {});
  std::vector<Dim> dims(factor.rank() < 2 ? 1 : static_cast<size_t>(factor.rank()), Dim(1));
  if (factor.rank() >= 2) {
    std::copy(factor.type().dims.begin(), factor.type().dims.end(), dims.begin());
    dims[dims.size() - static_cast<size_t>(3 - from_end)] = Dim(1);
  }
  if (type.rank() == 1 && from_end == 2 && factor.rank() >= 2) parameter = node.unsqueeze(parameter, 1);
  parameter = with_extents(node, parameter, dims, /*stretches=*/true);
  bool is_shaped = type.rank() == 1 || type.rank() == factor.rank();
  if (!parameter || !node.check(is_shaped && broadcast_dims(parameter.type().dims, dims) == dims,
                                "a scale or zero point is " + type.to_string() + " beside " +
                                    factor.type().to_string() + ", wants one element" +
                                    (factor.rank() < 2 ? ""
                                     : from_end == 2   ? " or one per row"
                                                       : " or one per column")))
    return {};
  return factor.rank() < 2 ? node.reshape(parameter, {}) : parameter;
}

Value by_row(NodeContext& node, Value parameter, Value a) {
  return along_dim(node, parameter, a, 2);
}
Value by_column(NodeContext& node, Value parameter, Value b) {
  return along_dim(node, parameter, b, 1);
}

// The product has no dim for a factor that is a vector.
Value by_product_row(NodeContext& node, Value parameter, Value a, Value b) {
  Value rows = by_row(node, parameter, a);
  return rows && rows.rank() > 0 && b.rank() == 1 ? node.squeeze(rows, rows.rank() - 1) : rows;
}
Value by_product_column(NodeContext& node, Value parameter, Value a, Value b) {
  Value columns = by_column(node, parameter, b);
  return columns && columns.rank() > 1 && a.rank() == 1 ? node.squeeze(columns, columns.rank() - 2) : columns;
}

Value centered_product(NodeContext& node, Value a, Value a_zero, Value b, Value b_zero) {
  return matrix_product(node, centered(node, a, by_row(node, a_zero, a)),
                        centered(node, b, by_column(node, b_zero, b)));
}

namespace {

void import_dynamic_quantize(NodeContext& node) {
  DynamicQuantization made = quantize_dynamically(node, node.input(0));
  node.set_output(0, made.x);
  node.set_output(1, made.scale);
  node.set_output(2, made.zero_point);
}

Value by_channel(NodeContext& node, Value parameter, int rank) {
  return parameter && parameter.rank() == 1 ? per_channel(node, parameter, rank) : parameter;
}
// The zero point of a filter [O,...]: one element, or one per output channel.
Value by_filter(NodeContext& node, Value parameter, int rank) {
  return parameter && parameter.rank() == 1 ? per_channel(node, parameter, rank + 1) : parameter;
}

// accumulator * (x_scale * w_scale / y_scale), rounded to the dtype of the result's zero point.
Value requantize(NodeContext& node, Value accumulator, Value x_scale, Value w_scale, Value y_scale,
                 Value zero_point) {
  if (!accumulator || !x_scale || !w_scale || !y_scale) return {};
  Value factor = node.binary(
      Opcode::Divide,
      node.binary(Opcode::Multiply, node.convert(x_scale, DType::F32), node.convert(w_scale, DType::F32)),
      node.convert(y_scale, DType::F32));
  Value scaled = node.binary(Opcode::Multiply, node.convert(accumulator, DType::F32), factor);
  const DType dtype = zero_point.dtype();
  return quantize_scaled(node, scaled, is_float(dtype) ? Value{} : zero_point, dtype);
}

void import_qlinear_matmul(NodeContext& node) {
  Value a = node.input(0), b = node.input(3);
  Value product = centered_product(node, a, node.input(2), b, node.input(5));
  // The result may also have a scale and a zero point per row of a.
  auto of_rows = [&](int input) { return by_product_row(node, node.input(input), a, b); };
  Value a_scale = of_rows(1), b_scale = by_product_column(node, node.input(4), a, b);
  Value y_scale = of_rows(6), y_zero_point = of_rows(7);
  if (product && !node.failed())
    node.set_output(0, requantize(node, product, a_scale, b_scale, y_scale, y_zero_point));
}

void import_matmul_integer(NodeContext& node) {
  node.set_output(0, centered_product(node, node.input(0), node.input(2), node.input(1), node.input(3)));
}

// The channels of x and y are dim 1, or the last dim if `channels_last`.
void qlinear_conv(NodeContext& node, bool channels_last) {
  int rank = node.input(0).rank();
  for (int i : {1, 2, 6, 7})
    if (!node.check_scalar(i)) return;
  if (!node.check_rank_at_least(0, 3)) return;
  Ints to_front{0, rank - 1}, to_back{0};
  for (int64_t i = 1; i + 1 < rank; ++i) to_front.push_back(i), to_back.push_back(i + 1);
  to_back.push_back(1);
  Value x = channels_last ? node.transpose(node.input(0), to_front) : node.input(0);
  x = centered(node, x, node.reshape_to(node.input(2), {}));
  Value w = centered(node, node.input(3), by_filter(node, node.input(5), rank));
  Value sum = convolve(node, x, 0, w, 3);
  if (!sum) return;
  if (node.has_input(8)) {
    Value bias = input_with_extents(node, 8, {sum.type().dims[1]});
    sum = node.binary(Opcode::Add, sum, per_channel(node, bias, rank));
  }
  Value x_scale = node.reshape_to(node.input(1), {}), y_scale = node.reshape_to(node.input(6), {});
  Value y_zero_point = node.reshape_to(node.input(7), {});
  if (node.failed()) return;
  Value y = requantize(node, sum, x_scale, by_channel(node, node.input(4), rank), y_scale, y_zero_point);
  node.set_output(0, channels_last ? node.transpose(y, to_back) : y);
}

void import_qlinear_conv(NodeContext& node) {
  qlinear_conv(node, /*channels_last=*/false);
}

void import_contrib_qlinear_conv(NodeContext& node) {
  qlinear_conv(node, node.flag_attribute("channels_last", false));
}

void import_conv_integer(NodeContext& node) {
  int rank = node.input(0).rank();
  if (!node.check_rank_at_least(0, 3) || (node.has_input(2) && !node.check_scalar(2))) return;
  Value x_zero_point = node.has_input(2) ? node.reshape_to(node.input(2), {}) : Value{};
  Value x = centered(node, node.input(0), x_zero_point);
  Value w = centered(node, node.input(1), by_filter(node, node.input(3), rank));
  node.set_output(0, convolve(node, x, 0, w, 1));
}

const OperatorRow kRows[] = {
    {"", "ConvInteger", 10, kLatest, 2, 4, 1, 1, "T=int W=int T W", import_conv_integer,
     "convolution of integers to i32"},
    {"", "DequantizeLinear", 10, kLatest, 2, 3, 1, 1, "T=num float T", import_dequantize,
     "(x - zero point) * scale, per tensor, axis or block"},
    {"", "DynamicQuantizeLinear", 11, kLatest, 1, 1, 3, 3, "f32", import_dynamic_quantize,
     "quantisation to u8 by the range of the data"},
    {"", "MatMulInteger", 10, kLatest, 2, 4, 1, 1, "A=int B=int A B", import_matmul_integer,
     "matrix product of integers to i32"},
    {"", "QLinearConv", 10, kLatest, 8, 9, 1, 1, "T=int f32 T W=int f32 W f32 int i32", import_qlinear_conv,
     "convolution of quantised tensors"},
    {"com.microsoft", "QLinearConv", 1, kLatest, 8, 9, 1, 1, "T=int f32 T W=int f32 W f32 int i32",
     import_contrib_qlinear_conv, "convolution of quantised tensors, perhaps with channels last"},
    {"", "QLinearMatMul", 10, kLatest, 8, 8, 1, 1, "A=num S=float A B=num S B S num", import_qlinear_matmul,
     "matrix product of quantised tensors"},
    {"", "QuantizeLinear", 10, kLatest, 2, 3, 1, 1, "num num num", import_quantize,
     "round(x / scale) + zero point, per tensor, axis or block"},
};

} // namespace

std::span<const OperatorRow> quantization_operators() {
  return kRows;
}

} // namespace firn::onnx
