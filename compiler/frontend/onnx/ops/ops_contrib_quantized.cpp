// Importers of com.microsoft's operators on quantised tensors: elementwise ones and poolings between a
// dequantisation and a quantisation, products of integers, and weights of few bits in blocks.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/pooling_operators.h"
#include "compiler/frontend/onnx/ops/quantization_operators.h"
#include "compiler/graph/composites.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>

namespace firn::onnx {

namespace {

// A scalar input; null if it is left out.
Value parameter(NodeContext& node, int index) {
  if (!node.has_input(index)) return {};
  return node.check_scalar(index) ? node.reshape_to(node.input(index), {}) : Value{};
}

bool has_inputs(NodeContext& node, std::initializer_list<int> wanted) {
  for (int i : wanted)
    if (!node.check_given(i)) return false;
  return true;
}

// The tensor at `index` in f32, with its scale behind it, and its zero point, which may be left out.
Value dequantized(NodeContext& node, int index) {
  if (!has_inputs(node, {index, index + 1})) return {};
  Value zero_point = parameter(node, index + 2);
  return dequantize(node, node.input(index), parameter(node, index + 1), zero_point);
}

// f32 as integers of a dtype, with scale and zero point at `index`.
Value quantized(NodeContext& node, Value x, int index, DType dtype) {
  if (!has_inputs(node, {index})) return {};
  Value zero_point = parameter(node, index + 1);
  return quantize(node, x, parameter(node, index), zero_point, dtype);
}

// f32 as integers of a dtype, with the zero point added before rounding. Rounding goes to even, so that an
// odd zero point sends halves the other way than quantized() does.
Value quantized_with_offset(NodeContext& node, Value x, int index, DType dtype) {
  if (!has_inputs(node, {index})) return {};
  Value scaled = divide(node, x, parameter(node, index));
  if (Value zero = parameter(node, index + 1)) scaled = add(node, scaled, node.convert(zero, DType::F32));
  return quantize_scaled(node, scaled, {}, dtype);
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
  if (!x || !has_inputs(node, {4})) return;
  int64_t opset = node.int_attribute("opset", 13);
  auto axis = node.axis(node.int_attribute("axis", opset < 13 ? 1 : -1), x.rank());
  if (!axis) return;
  const std::vector<Dim> dims = x.type().dims;
  GraphBuilder builder = node.builder();
  if (opset >= 13) {
    x = make_softmax(builder, x, *axis);
  } else {
    // Before opset 13 all dims from the axis on count as one.
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
    node.set_output(
        0, quantized(node, concatenate_where_equal(node, std::move(parts), *axis), 0, node.input(1).dtype()));
}

void import_where(NodeContext& node) {
  Value chosen = node.select(node.input(0), dequantized(node, 1), dequantized(node, 4));
  node.set_output(0, quantized(node, chosen, 7, node.input(1).dtype()));
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
  Value sum = matrix_product(node, a, centered(node, b, by_column(node, node.input(5), b)));
  if (node.has_input(6)) sum = add(node, sum, node.input(6));
  Value scale = multiply(node, parameter(node, 1), by_column(node, node.input(4), b));
  scale = times(node, scale, node.float_attribute("alpha", 1));
  if (!sum || !scale) return;
  Value y = node.op(Opcode::Dequantize, {sum, scale},
                    scale.rank() == 1 ? Attributes{{"axis", int64_t{1}}} : Attributes{});
  if (node.failed()) return;
  node.set_output(0, node.has_input(7)
                         ? quantized(node, y, 7, node.has_input(8) ? node.input(8).dtype() : DType::U8)
                         : y);
}

} // namespace

Value scaled_product(NodeContext& node, Value a, Value a_scale, Value a_zero, Value b, Value b_scale,
                     Value b_zero, Value bias) {
  Value sum = centered_product(node, a, a_zero, b, b_zero);
  Value scale = multiply(node, by_product_row(node, a_scale, a, b), by_product_column(node, b_scale, a, b));
  Value result = multiply(node, node.convert(sum, DType::F32), scale);
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

constexpr int64_t kMax = int64_t{1} << 30; // extents and blocks, so that products of two do not overflow

// u8 [..., n] as i32 [..., n * 8 / bits], the lowest bits first; bytes stay u8.
Value unpacked(NodeContext& node, Value x, int64_t bits) {
  if (!x || bits == 8) return x;
  std::vector<Dim> dims = x.type().dims;
  Value wide = node.convert(x, DType::I32);
  Values parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value part = node.binary(Opcode::ShiftRight, wide, node.scalar_int(DType::I32, shift));
    part = both(node, part, node.scalar_int(DType::I32, (int64_t{1} << bits) - 1));
    parts.push_back(node.unsqueeze(part, x.rank()));
  }
  if (node.failed()) return {};
  dims.back() = Dim(dims.back().extent * (8 / bits));
  return node.reshape(node.concatenate(std::move(parts), x.rank()), dims);
}

// Constant rows of packed numbers as u2, u4 or u8 of `dims`, whose first dim counts the rows; null if they
// are not constant. A row's last byte may hold bits of no number.
Value packed_constant(NodeContext& node, Value packed, int64_t bits, const std::vector<int64_t>& dims) {
  LiteralRef given = node.constant(packed);
  if (!given || given->dtype() != DType::U8 || given->is_opaque()) return {};
  const DType dtype = bits == 2 ? DType::U2 : bits == 4 ? DType::U4 : DType::U8;
  auto made = std::make_shared<Literal>(dtype, dims);
  std::span<const uint8_t> in = given->data<uint8_t>();
  const int64_t rows = dims[0], count = made->num_elements() / rows, row_bytes = (count * bits + 7) / 8;
  if (static_cast<int64_t>(in.size()) != rows * row_bytes) return {};
  if (count * bits % 8 == 0)
    std::memcpy(made->mutable_bytes().data(), in.data(), in.size());
  else
    for (int64_t i = 0; i < made->num_elements(); ++i) {
      const int64_t bit = i % count * bits;
      made->set_int(i, in[static_cast<size_t>(i / count * row_bytes + bit / 8)] >> (bit % 8));
    }
  Value numbers = node.model_constant(std::move(made));
  if (numbers) numbers.def->set_location(packed.def->location());
  return numbers;
}

// A matrix [n,k] of `bits` bits in `blocks` blocks along k, the last of which is padded.
struct BlockMatrix {
  int64_t n = 0, k = 0, bits = 4, block = 0, blocks = 0;
};

std::optional<BlockMatrix> read_block_matrix(NodeContext& node) {
  BlockMatrix m{node.required_int("N"), node.required_int("K"), node.int_attribute("bits", 4),
                node.required_int("block_size")};
  if (node.failed() ||
      !node.check(m.k > 0 && m.n > 0 && m.k < kMax && m.n < kMax && m.block >= 16 && m.block < kMax,
                  "K, N or block_size is out of range") ||
      !node.check(m.bits == 2 || m.bits == 4 || m.bits == 8,
                  "bits is " + std::to_string(m.bits) + ", wants 2, 4 or 8"))
    return std::nullopt;
  m.blocks = (m.k + m.block - 1) / m.block;
  Type type = node.input(1).type();
  int64_t bytes = m.block * m.bits / 8;
  if (!node.check(type.is_static() && type.num_elements() == m.n * m.blocks * bytes,
                  node.input_label(1) + " is " + type.to_string() + ", wants [" + std::to_string(m.n) + "," +
                      std::to_string(m.blocks) + "," + std::to_string(bytes) + "]"))
    return std::nullopt;
  return m;
}

// Integers of weights, and one zero point for each row and block, of the same dtype.
struct BlockIntegers {
  Value weights, zeros;
};

// Weights as they are stored where they and their zero points are constants, else i32, or f32 if zero points
// are floats.
BlockIntegers block_integers(NodeContext& node, const BlockMatrix& m) {
  Value packed = node.input(1), given = node.input(3);
  const double middle = static_cast<double>(int64_t{1} << (m.bits - 1));
  const bool are_packed = !given || given.dtype() == DType::U8, has_ids = node.has_input(4);
  if (are_packed && !has_ids) {
    if (Value weights = packed_constant(node, packed, m.bits, {m.n, m.blocks, m.block})) {
      if (!given) return {weights, node.scalar(weights.dtype(), middle)};
      if (Value zeros = packed_constant(node, given, m.bits, {m.n, m.blocks, 1})) return {weights, zeros};
    }
  }
  Value bytes = node.reshape_to(packed, {m.n, m.blocks, m.block * m.bits / 8});
  Value weights = unpacked(node, bytes, m.bits);
  if (!weights) return {};
  if (!are_packed) {
    weights = node.convert(weights, DType::F32);
    given = node.convert(reshape_where_equal(node, given, {Dim(m.n), Dim(m.blocks)}), DType::F32);
  } else if (given) {
    const int64_t row_bytes = (m.blocks * m.bits + 7) / 8;
    given = unpacked(node, reshape_where_equal(node, given, {Dim(m.n), Dim(row_bytes)}), m.bits);
    if (given) given = node.slice_dim(given, 1, 0, m.blocks);
  } else {
    return {weights, node.scalar(weights.dtype(), middle)};
  }
  return {weights, given ? node.unsqueeze(given, 2) : given};
}

// The matrix as f32 [n,k], dequantised block by block.
Value block_weights(NodeContext& node, const BlockMatrix& m) {
  auto whole = [&](Value weights) {
    weights = node.reshape_to(weights, {m.n, m.blocks * m.block});
    return m.blocks * m.block == m.k ? weights : node.slice_dim(weights, 1, 0, m.k);
  };
  Value scales = reshape_where_equal(node, node.input(2), {Dim(m.n), Dim(m.blocks)});
  scales = node.convert(scales, DType::F32);
  if (!scales) return {};
  scales = node.unsqueeze(scales, 2);
  BlockIntegers integers = block_integers(node, m);
  if (!integers.weights || !integers.zeros) return {};
  auto dequantised = [&](Value x, Value scale, Value zero) {
    return node.op(Opcode::Dequantize, {x, scale, zero});
  };
  if (!node.has_input(4)) return whole(dequantised(integers.weights, scales, integers.zeros));
  // Input 4 gives the block of each column, whose scale and zero point it takes.
  if (!node.check_dims(4, {m.k})) return {};
  auto of_block = [&](Value x) {
    if (x.rank() == 0) return x;
    return node.op(Opcode::Gather, {node.squeeze(x, 2), node.input(4)}, {{"axis", int64_t{1}}});
  };
  return dequantised(whole(integers.weights), of_block(scales), of_block(integers.zeros));
}

// A times the transposed matrix [N,K]. accuracy_level gives the dtype to which A may be rounded; this level
// means i8.
constexpr int64_t kBytesSuffice = 4;
void import_matmul_bits(NodeContext& node) {
  if (!node.check_rank_at_least(0, 1)) return;
  auto matrix = read_block_matrix(node);
  if (!matrix) return;
  Value a = node.input(0);
  std::vector<Dim> dims = a.type().dims;
  dims.back() = Dim(matrix->k);
  a = with_extents(node, a, dims);
  if (!a ||
      !node.check(a.type().dims == dims, node.input_label(0) + " is " + node.input(0).type().to_string() +
                                             ", wants " + Type::tensor(a.dtype(), dims).to_string()))
    return;
  Value weights = block_weights(node, *matrix), wide = node.convert(a, DType::F32);
  if (!weights || node.failed()) return;
  Value y = dot(node, wide, weights, {}, {}, {wide.rank() - 1}, {1});
  if (y && node.int_attribute("accuracy_level", 0) == kBytesSuffice)
    y.def->attributes().set("factors", DType::I8);
  if (node.has_input(5)) y = add(node, y, node.convert(node.input(5), DType::F32));
  node.set_output(0, node.convert(y, a.dtype()));
}

// A table of few bits, quantised in blocks along a dim.
struct BlockTable {
  Value values, scales, zeros;
  int64_t bits = 4, block = 128;
  int gathered = 0, blocked = 1; // dims
  // Bytes hold numbers of `bits` bits, the lowest bits first. The default zero point of such numbers is the
  // middle of their range.
  bool is_bytes() const { return values.dtype() == DType::U8; }
};

std::optional<BlockTable> read_block_table(NodeContext& node) {
  BlockTable table{node.input(0), node.input(2), node.input(3), node.int_attribute("bits", 4),
                   node.int_attribute("block_size", 128)};
  int rank = table.values.rank();
  auto gathered = node.axis(node.int_attribute("gather_axis", 0), rank);
  auto blocked = node.axis(node.int_attribute("quantize_axis", 1), rank);
  if (!gathered || !blocked || !node.check_rank(2, rank) || (table.zeros && !node.check_rank(3, rank)))
    return std::nullopt;
  table.gathered = *gathered;
  table.blocked = *blocked;
  bool fits = table.bits == 4 || (table.is_bytes() && (table.bits == 2 || table.bits == 8));
  if (!node.check(fits, "attribute bits is " + std::to_string(table.bits) + " of " +
                            table.values.type().to_string() + ", wants 4, or 2, 4 or 8 of u8") ||
      !node.check(table.block >= 16 && table.block < kMax,
                  "attribute block_size is " + std::to_string(table.block) + ", wants 16 or more"))
    return std::nullopt;
  if (table.is_bytes() &&
      !node.check(*gathered == 0 && (table.bits == 8 || *blocked != 0),
                  "u8 is gathered along axis " + std::to_string(*gathered) + " and quantised along axis " +
                      std::to_string(*blocked) + ", wants to be gathered along axis 0 alone"))
    return std::nullopt;
  return table;
}

// The parameter of each block gathered at the indices. Where blocks lie along another dim than that, it has
// one element for each block of `taken`, along `axis`; else one for each element.
struct GatheredParameters {
  int axis = 0;
  bool by_block = false;
  Value indices;
};
std::optional<GatheredParameters> gathered_parameters(NodeContext& node, const BlockTable& table,
                                                      Value taken) {
  GatheredParameters found{.axis = table.blocked, .indices = node.input(1)};
  found.by_block = table.gathered != table.blocked;
  if (table.blocked > table.gathered) found.axis += found.indices.rank() - 1;
  auto extent =
      found.by_block ? node.static_dim(taken, found.axis, "the table") : node.static_dim(0, table.blocked);
  auto blocks = node.static_dim(2, table.blocked);
  if (!extent || !blocks ||
      !node.check(*blocks == (*extent + table.block - 1) / table.block,
                  "has " + std::to_string(*blocks) + " scales for " + std::to_string(*extent) + " elements"))
    return std::nullopt;
  if (found.by_block) return found;
  Value& indices = found.indices;
  auto number = [&](int64_t value) { return node.scalar_int(indices.dtype(), value); };
  Value from_end = add(node, indices, number(*extent));
  indices = node.select(node.compare("lt", indices, number(0)), from_end, indices);
  indices = divide(node, indices, number(table.block));
  return found;
}

// The zero points of all blocks as the table's numbers are; null if these have none.
Value block_table_zeros(NodeContext& node, const BlockTable& table) {
  if (!table.zeros || !table.is_bytes()) return table.zeros;
  // The last byte of a row may hold bits of no block.
  auto last = node.static_dim(2, table.scales.rank() - 1);
  Value all = unpacked(node, table.zeros, table.bits);
  return all && last ? node.slice_dim(all, all.rank() - 1, 0, *last) : Value{};
}

void import_gather_blocks(NodeContext& node) {
  auto table = read_block_table(node);
  if (!table) return;
  auto gathered = [&](Value x, Value indices) {
    return node.op(Opcode::Gather, {x, indices}, {{"axis", int64_t{table->gathered}}});
  };
  Value x = gathered(table->values, node.input(1));
  if (x && table->is_bytes()) x = unpacked(node, x, table->bits);
  Value zeros = block_table_zeros(node, *table);
  if (!x || node.failed()) return;
  if (table->zeros &&
      !node.check(zeros.type().dims == table->scales.type().dims,
                  "zero points are of " + zeros.type().to_string() + " blocks, wants those of the scales, " +
                      table->scales.type().to_string()))
    return;
  auto parameters = gathered_parameters(node, *table, x);
  if (!parameters) return;
  if (zeros)
    zeros = gathered(zeros, parameters->indices);
  else if (table->is_bytes())
    zeros = node.scalar_int(x.dtype(), int64_t{1} << (table->bits - 1));
  Values operands{x, gathered(node.convert(table->scales, DType::F32), parameters->indices)};
  if (zeros) operands.push_back(zeros);
  Attributes attributes;
  if (parameters->by_block) {
    attributes.set("axis", int64_t{parameters->axis});
    attributes.set("block", table->block);
  }
  Value y = node.op(Opcode::Dequantize, std::move(operands), std::move(attributes));
  node.set_output(0, node.convert(y, table->scales.dtype()));
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
    {kDomain, "QLinearAdd", 1, kLatest, 2, 8, 1, 1, "T=int f32 T T f32 T f32 T", import_add,
     "sum of quantised tensors"},
    {kDomain, "QLinearAveragePool", 1, kLatest, 2, 5, 1, 1, "T=int f32 T f32 T", import_average_pool,
     "means under a window of a quantised tensor"},
    {kDomain, "QLinearConcat", 1, kLatest, 5, kVariadic, 1, 1, "f32 int any", import_concat,
     "quantised tensors end to end"},
    {kDomain, "QLinearGlobalAveragePool", 1, kLatest, 5, 5, 1, 1, "T=int f32 T f32 T",
     import_global_average_pool, "means over space of a quantised tensor"},
    {kDomain, "QLinearLeakyRelu", 1, kLatest, 2, 5, 1, 1, "T=int f32 T f32 T", import_leaky_relu,
     "leaky ReLU of a quantised tensor"},
    {kDomain, "QLinearMul", 1, kLatest, 2, 8, 1, 1, "T=int f32 T T f32 T f32 T", import_multiply,
     "product of quantised tensors"},
    {kDomain, "QLinearSigmoid", 1, kLatest, 2, 5, 1, 1, "T=int f32 T f32 T", import_sigmoid,
     "logistic function of a quantised tensor"},
    {kDomain, "QLinearSoftmax", 1, kLatest, 2, 5, 1, 1, "T=int f32 T f32 T", import_softmax,
     "softmax of a quantised tensor"},
    {kDomain, "QLinearWhere", 1, kLatest, 9, 9, 1, 1, "bool T=int f32 T T f32 T f32 T", import_where,
     "elements of one of two quantised tensors, by a mask"},
    {kDomain, "QuantizeLinear", 1, kLatest, 2, 3, 1, 1, "num num num", import_quantize,
     "round(x / scale) + zero point, per tensor or axis"},
};

} // namespace

std::span<const OperatorRow> contrib_quantized_operators() {
  return kRows;
}

} // namespace firn::onnx
