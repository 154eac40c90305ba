// Importers of com.microsoft's operators on quantised tensors: elementwise ones and poolings between a
// dequantisation and a quantisation, products of integers, and weights of few bits in blocks.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/attention.h"
#include "compiler/frontend/onnx/matrix_product.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/pooling.h"
#include "compiler/frontend/onnx/quantization.h"
#include "compiler/graph/composites.h"

#include <algorithm>
#include <array>
#include <span>

namespace firn::onnx {

namespace {

// A scalar input, null where it is left out.
Value parameter(NodeContext& node, int index) {
  if (!node.has_input(index)) return {};
  return node.check_scalar(index) ? node.reshape_to(node.input(index), {}) : Value{};
}

// The tensor at `index` in f32, with its scale and zero point behind it.
Value dequantized(NodeContext& node, int index) {
  Value difference = centered(node, node.input(index), parameter(node, index + 2));
  return multiply(node, node.convert(difference, DType::F32), parameter(node, index + 1));
}

// f32 as integers of a dtype, with scale and zero point at `index`.
Value quantized(NodeContext& node, Value x, int index, DType dtype) {
  return to_integer(node, divide(node, x, parameter(node, index)), parameter(node, index + 1), dtype);
}

// The same with the zero point added before the rounding, which goes to even: where the zero point is odd,
// halves go the other way.
Value quantized_with_offset(NodeContext& node, Value x, int index, DType dtype) {
  Value scaled = divide(node, x, parameter(node, index));
  if (Value zero = parameter(node, index + 1)) scaled = add(node, scaled, node.convert(zero, DType::F32));
  return to_integer(node, scaled, {}, dtype);
}

void import_add(NodeContext& node) {
  Value sum = add(node, dequantized(node, 0), dequantized(node, 3));
  node.set_output(0, quantized_with_offset(node, sum, 6, node.input(0).dtype()));
}
void import_multiply(NodeContext& node) {
  Value product = multiply(node, dequantized(node, 0), dequantized(node, 3));
  node.set_output(0, quantized(node, product, 6, node.input(0).dtype()));
}

void import_leaky_relu(NodeContext& node) {
  Value x = dequantized(node, 0);
  if (!x) return;
  Value below = times(node, x, node.float_attribute("alpha", 0.01f));
  x = node.select(node.compare("lt", x, node.scalar(DType::F32, 0)), below, x);
  node.set_output(0, quantized(node, x, 3, node.input(0).dtype()));
}
void import_sigmoid(NodeContext& node) {
  Value x = dequantized(node, 0);
  node.set_output(0, quantized(node, node.unary(Opcode::Logistic, x), 3, node.input(0).dtype()));
}
void import_softmax(NodeContext& node) {
  Value x = dequantized(node, 0);
  if (!x) return;
  int64_t opset = node.int_attribute("opset", 13);
  auto axis = node.axis(node.int_attribute("axis", opset < 13 ? 1 : -1), x.rank());
  if (!axis) return;
  const std::vector<Dim> dims = x.type().dims;
  GraphBuilder builder = node.builder();
  if (opset >= 13) {
    x = make_softmax(builder, x, *axis);
  } else {
    // Before opset 13 all dims from the axis on are one.
    auto outer = node.product({dims.begin(), dims.begin() + *axis});
    auto inner = node.product({dims.begin() + *axis, dims.end()});
    if (!outer || !inner) return;
    x = node.reshape(x, {*outer, *inner});
    if (x) x = node.reshape(make_softmax(builder, x, 1), dims);
  }
  node.set_output(0, quantized(node, x, 3, node.input(0).dtype()));
}

void import_global_average_pool(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return;
  Value x = dequantized(node, 0);
  bool channels_last = node.flag_attribute("channels_last", false);
  std::vector<int> dims;
  for (int i = channels_last ? 1 : 2; i < node.input(0).rank() - (channels_last ? 1 : 0); ++i)
    dims.push_back(i);
  if (!x) return;
  Value sum = node.reduce(Opcode::Add, x, dims, true);
  node.set_output(
      0, quantized(node, divide(node, sum, node.count(x, dims, DType::F32)), 3, node.input(0).dtype()));
}

Value moved(NodeContext& node, Value x, bool channels_last, bool back) {
  if (!x || !channels_last) return x;
  Ints order{0};
  for (int i = 1; i + 1 < x.rank(); ++i) order.push_back(back ? i + 1 : i);
  order.insert(back ? order.end() : order.begin() + 1, back ? 1 : x.rank() - 1);
  return node.transpose(x, order);
}

void import_average_pool(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return;
  bool last = node.flag_attribute("channels_last", false);
  Value means = average_pool(node, moved(node, dequantized(node, 0), last, /*back=*/false));
  if (!means) return;
  node.set_output(
      0, quantized_with_offset(node, moved(node, means, last, /*back=*/true), 3, node.input(0).dtype()));
}
void import_nhwc_max_pool(NodeContext& node) {
  if (!node.check_rank_at_least(0, 3)) return;
  Value x = moved(node, node.input(0), /*channels_last=*/true, /*back=*/false);
  node.set_output(0, moved(node, max_pool(node, x), /*channels_last=*/true, /*back=*/true));
}

void import_concat(NodeContext& node) {
  if (!node.check(node.num_inputs() >= 5 && node.num_inputs() % 3 == 2,
                  "has " + std::to_string(node.num_inputs()) + " inputs, wants two and three per tensor"))
    return;
  auto axis = node.axis(node.required_int("axis"), node.input(2).rank());
  Values parts;
  for (int i = 2; i < node.num_inputs(); i += 3) parts.push_back(dequantized(node, i));
  if (axis && !node.failed())
    node.set_output(0, quantized(node, node.concatenate(std::move(parts), *axis), 0, node.input(1).dtype()));
}

// --- Products.

Value transposed(NodeContext& node, Value x, const char* attribute) {
  return x && node.flag_attribute(attribute, false) ? node.transpose(x, {1, 0}) : x;
}

// alpha * (A - zero) * (B - zero) + C in sums of integers, as f32 or quantised again.
void import_gemm_quantized(NodeContext& node) {
  if (!node.check_rank(0, 2) || !node.check_rank(3, 2)) return;
  Value a = transposed(node, centered(node, node.input(0), parameter(node, 2)), "transA");
  Value b = transposed(node, node.input(3), "transB");
  // The zero point and the scale of B are one, or one per column.
  Value sum = matrix_product(node, a, centered(node, b, node.input(5)));
  if (node.has_input(6)) sum = add(node, sum, node.input(6));
  Value scale = multiply(node, parameter(node, 1), node.input(4));
  Value y =
      multiply(node, node.convert(sum, DType::F32), times(node, scale, node.float_attribute("alpha", 1)));
  if (node.failed()) return;
  node.set_output(0, node.has_input(7)
                         ? quantized(node, y, 7, node.has_input(8) ? node.input(8).dtype() : DType::U8)
                         : y);
}

} // namespace

Value scaled_product(NodeContext& node, Value a, Value a_scale, Value a_zero, Value b, Value b_scale,
                     Value b_zero, Value bias) {
  Value sum = matrix_product(node, centered(node, a, by_row(node, a_zero, a)), centered(node, b, b_zero));
  Value result =
      multiply(node, node.convert(sum, DType::F32), multiply(node, by_row(node, a_scale, sum), b_scale));
  return bias ? add(node, result, bias) : result;
}

namespace {

void import_dynamic_matmul(NodeContext& node) {
  DynamicQuantization a = quantize_dynamically(node, node.input(0));
  node.set_output(0, scaled_product(node, a.x, a.scale, a.zero_point, node.input(1), node.input(2),
                                    node.input(3), node.input(4)));
}
void import_matmul_to_float(NodeContext& node) {
  node.set_output(0, scaled_product(node, node.input(0), node.input(2), node.input(4), node.input(1),
                                    node.input(3), node.input(5), node.input(6)));
}

// --- Weights of few bits.

constexpr int64_t kMost = int64_t{1} << 30; // extents and blocks, so that products of two do not overflow

// u8 [..., n] as i32 [..., n * 8 / bits], the lowest bits first.
Value unpacked(NodeContext& node, Value x, int64_t bits) {
  std::vector<Dim> dims = x.type().dims;
  Value wide = node.convert(x, DType::I32);
  if (bits == 8) return wide;
  Values parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value part = node.binary(Opcode::ShiftRight, wide, node.scalar_int(DType::I32, shift));
    part = both(node, part, node.scalar_int(DType::I32, (int64_t{1} << bits) - 1));
    parts.push_back(node.unsqueeze(part, x.rank()));
  }
  dims.back() = Dim(dims.back().extent * (8 / bits));
  return node.reshape(node.concatenate(std::move(parts), x.rank()), dims);
}

// f32 [rows, blocks] of zero points: given packed in u8, as floats, or left out.
Value block_zeros(NodeContext& node, Value given, int64_t bits, int64_t rows, int64_t blocks) {
  if (!given) return node.scalar(DType::F32, static_cast<double>(int64_t{1} << (bits - 1)));
  if (given.dtype() != DType::U8) return node.convert(node.reshape_to(given, {rows, blocks}), DType::F32);
  int64_t bytes = (blocks * bits + 7) / 8;
  Value all = unpacked(node, node.reshape_to(given, {rows, bytes}), bits);
  return node.convert(node.slice_dim(all, 1, 0, blocks), DType::F32);
}

// Element `i` of a row of packed integers, the lowest bits of a byte first.
int bits_at(std::span<const uint8_t> row, int64_t i, int64_t bits) {
  int64_t at = i * bits;
  return row[static_cast<size_t>(at / 8)] >> (at % 8) & ((1 << bits) - 1);
}

// Constant weights [rows, blocks, block] less their zero points, as i8; nothing if they are not constant, or
// some do not fit.
Value centered_weights(NodeContext& node, Value packed, Value zeros, int64_t bits,
                       std::array<int64_t, 3> dims) {
  LiteralRef weights = node.constant(packed), points = node.constant(zeros);
  if (!weights || weights->dtype() != DType::U8 || (zeros && (!points || points->dtype() != DType::U8)))
    return {};
  auto [rows, blocks, block] = dims;
  size_t row_bytes = static_cast<size_t>(blocks * block * bits / 8),
         zero_bytes = static_cast<size_t>((blocks * bits + 7) / 8);
  if (points && points->data<uint8_t>().size() != static_cast<size_t>(rows) * zero_bytes) return {};
  auto centered = std::make_shared<Literal>(DType::I8, std::vector<int64_t>{rows, blocks, block});
  std::span<int8_t> out = centered->mutable_data<int8_t>();
  std::span<const uint8_t> in = weights->data<uint8_t>();
  for (int64_t row = 0, at = 0; row < rows; ++row) {
    std::span<const uint8_t> own = in.subspan(static_cast<size_t>(row) * row_bytes, row_bytes), zero_row;
    if (points) zero_row = points->data<uint8_t>().subspan(static_cast<size_t>(row) * zero_bytes, zero_bytes);
    for (int64_t i = 0; i < blocks * block; ++i, ++at) {
      int zero = points ? bits_at(zero_row, i / block, bits) : 1 << (bits - 1);
      int value = bits_at(own, i, bits) - zero;
      if (value < INT8_MIN || value > INT8_MAX) return {};
      out[static_cast<size_t>(at)] = static_cast<int8_t>(value);
    }
  }
  return node.model_constant(std::move(centered));
}

// A times the transposed matrix [N,K] of `bits` bits, in blocks along K, each with a scale and a zero point.
void import_matmul_bits(NodeContext& node) {
  int64_t k = node.required_int("K"), n = node.required_int("N"), bits = node.int_attribute("bits", 4),
          block = node.required_int("block_size");
  if (node.failed()) return;
  if (!node.check_rank_at_least(0, 1)) return;
  if (!node.check(k > 0 && n > 0 && k < kMost && n < kMost && block >= 16 && block < kMost,
                  "K, N or block_size is out of range") ||
      !node.check(bits == 2 || bits == 4 || bits == 8,
                  "bits is " + std::to_string(bits) + ", wants 2, 4 or 8"))
    return;
  if (node.has_input(4)) return node.fail_unsupported("g_idx is not supported");
  int64_t blocks = (k + block - 1) / block;
  Value a = node.input(0), b = node.input(1);
  if (!node.check(b.type().is_static() && b.type().num_elements() == n * blocks * (block * bits / 8),
                  node.input_label(1) + " is " + b.type().to_string() + ", wants [" + std::to_string(n) +
                      "," + std::to_string(blocks) + "," + std::to_string(block * bits / 8) + "]"))
    return;
  Value scales = node.convert(node.reshape_to(node.input(2), {n, blocks, 1}), DType::F32);
  Value weights = centered_weights(node, b, node.input(3), bits, {n, blocks, block});
  if (weights) {
    weights = multiply(node, node.convert(weights, DType::F32), scales);
  } else {
    weights =
        node.convert(unpacked(node, node.reshape_to(b, {n, blocks, block * bits / 8}), bits), DType::F32);
    Value zeros = block_zeros(node, node.input(3), bits, n, blocks);
    if (zeros && zeros.rank() > 0) zeros = node.unsqueeze(zeros, 2);
    weights = multiply(node, subtract(node, weights, zeros), scales);
  }
  weights = node.reshape_to(weights, {n, blocks * block});
  if (blocks * block != k) weights = node.slice_dim(weights, 1, 0, k);
  Value wide = node.convert(a, DType::F32);
  if (node.failed()) return;
  Value y = dot(node, wide, weights, {}, {}, {wide.rank() - 1}, {1});
  if (node.has_input(5)) y = add(node, y, node.convert(node.input(5), DType::F32));
  node.set_output(0, node.convert(y, a.dtype()));
}

// Rows of a table of few bits, quantised in blocks along its last dim.
void import_gather_blocks(NodeContext& node) {
  Value table = node.input(0), scales = node.input(2);
  int64_t bits = node.int_attribute("bits", 4), block = node.int_attribute("block_size", 128);
  auto gathered = node.axis(node.int_attribute("gather_axis", 0), table.rank());
  auto blocked = node.axis(node.int_attribute("quantize_axis", 1), table.rank());
  if (!gathered || !blocked || !node.check_rank(2, table.rank())) return;
  if (*blocked != table.rank() - 1 || *gathered == *blocked)
    return node.fail_unsupported("blocks lie along the last axis, rows along another");
  if (!node.check(block >= 16 && block < kMost && (bits == 4 || bits == 8),
                  "block_size or bits is out of range"))
    return;
  bool packed = table.dtype() == DType::U8 && bits == 4;
  auto rows = [&](Value x) {
    return node.op(Opcode::Gather, {x, node.input(1)}, {{"axis", int64_t{*gathered}}});
  };
  Value x = rows(table), scale = rows(scales), zero = node.has_input(3) ? rows(node.input(3)) : Value{};
  x = packed ? unpacked(node, x, bits) : node.convert(x, DType::I32);
  if (zero) zero = packed ? unpacked(node, zero, bits) : node.convert(zero, DType::I32);
  if (!x || !scale || node.failed()) return;
  auto extent = node.static_dim(x, x.rank() - 1, "the table"),
       blocks = node.static_dim(scale, x.rank() - 1, "scales");
  if (!extent || !blocks) return;
  if (!node.check(*blocks == (*extent + block - 1) / block,
                  "has " + std::to_string(*blocks) + " scales for " + std::to_string(*extent) + " elements"))
    return;
  // By element: [..., blocks] repeated.
  auto spread = [&](Value each) {
    std::vector<Dim> dims = each.type().dims, joined = x.type().dims;
    dims.back() = Dim(*blocks);
    dims.push_back(Dim(block));
    joined.back() = Dim(*blocks * block);
    Value cut = node.slice_dim(each, each.rank() - 1, 0, *blocks);
    Value all = node.reshape(node.broadcast_to(node.unsqueeze(cut, cut.rank()), dims), joined);
    return *blocks * block == *extent ? all : node.slice_dim(all, all.rank() - 1, 0, *extent);
  };
  if (zero)
    x = subtract(node, x, spread(zero));
  else if (packed)
    x = subtract(node, x, node.scalar_int(DType::I32, int64_t{1} << (bits - 1)));
  Value y = multiply(node, node.convert(x, DType::F32), spread(node.convert(scale, DType::F32)));
  node.set_output(0, node.convert(y, scales.dtype()));
}

constexpr const char* kDomain = "com.microsoft";
constexpr OperatorRow kRows[] = {
    {kDomain, "DequantizeLinear", 1, kLatest, 2, 3, 1, 1, "T=num float T", import_dequantize,
     "(x - zero point) * scale, per tensor or axis"},
    {kDomain, "DynamicQuantizeMatMul", 1, kLatest, 3, 5, 1, 1, "f32 B=int f32 B f32", import_dynamic_matmul,
     "matrix product with a factor that is quantised by its range"},
    {kDomain, "GatherBlockQuantized", 1, kLatest, 3, 4, 1, 1, "T=int index S=float T", import_gather_blocks,
     "rows of a table of few bits in blocks"},
    {kDomain, "MatMulIntegerToFloat", 1, kLatest, 4, 7, 1, 1, "A=int B=int f32 f32 A B f32",
     import_matmul_to_float, "matrix product of quantised tensors as f32"},
    {kDomain, "MatMulNBits", 1, kLatest, 3, 6, 1, 1, "T=float u8 T any i32 T", import_matmul_bits,
     "matrix product with weights of 2, 4 or 8 bits in blocks"},
    {kDomain, "NhwcMaxPool", 1, kLatest, 1, 1, 1, 1, "i8|u8", import_nhwc_max_pool,
     "largest element under a window, channels last"},
    {kDomain, "QAttention", 1, kLatest, 5, 9, 1, 2, "A=int B=int f32 f32 f32 i32 A B f32",
     import_quantized_attention, "attention behind a product of quantised tensors"},
    {kDomain, "QGemm", 1, kLatest, 6, 9, 1, 1, "A=int f32 A B=int f32 B i32 f32 int", import_gemm_quantized,
     "alpha * A * B + C of quantised tensors"},
    {kDomain, "QLinearAdd", 1, kLatest, 7, 8, 1, 1, "T=int f32 T T f32 T f32 T", import_add,
     "sum of quantised tensors"},
    {kDomain, "QLinearAveragePool", 1, kLatest, 4, 5, 1, 1, "T=int f32 T f32 T", import_average_pool,
     "means under a window of a quantised tensor"},
    {kDomain, "QLinearConcat", 1, kLatest, 5, kVariadic, 1, 1, "f32 int any", import_concat,
     "quantised tensors end to end"},
    {kDomain, "QLinearGlobalAveragePool", 1, kLatest, 5, 5, 1, 1, "T=int f32 T f32 T",
     import_global_average_pool, "means over space of a quantised tensor"},
    {kDomain, "QLinearLeakyRelu", 1, kLatest, 4, 5, 1, 1, "T=int f32 T f32 T", import_leaky_relu,
     "leaky ReLU of a quantised tensor"},
    {kDomain, "QLinearMul", 1, kLatest, 7, 8, 1, 1, "T=int f32 T T f32 T f32 T", import_multiply,
     "product of quantised tensors"},
    {kDomain, "QLinearSigmoid", 1, kLatest, 4, 5, 1, 1, "T=int f32 T f32 T", import_sigmoid,
     "logistic function of a quantised tensor"},
    {kDomain, "QLinearSoftmax", 1, kLatest, 5, 5, 1, 1, "T=int f32 T f32 T", import_softmax,
     "softmax of a quantised tensor"},
    {kDomain, "QuantizeLinear", 1, kLatest, 2, 3, 1, 1, "num num num", import_quantize,
     "round(x / scale) + zero point, per tensor or axis"},
};

} // namespace

std::span<const OperatorRow> contrib_quantized_operators() {
  return kRows;
}

} // namespace firn::onnx
