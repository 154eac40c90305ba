// keep-narrow-weights: multiplies by quantised weights as they are stored.
//
//   %w = dequantize %i, %s {axis = 1}                        %i : i8[768,3072], constant
//   %d = dot %x, %w : f32[1,3072]                    ->      %p = dot %x, %i {result = f32}
//                                                            %d = multiply %p, broadcast(%s)
//
//   %w = dequantize %i, %s {axis = 1, block = 32}            %i : i8[3072,768], %s : f32[3072,24]
//   %d = dot %x, %w : f32[1,3072]                    ->      %d = composite %x, %i, %s {name = blocked_dot}
//
// Where the model lets rows be rounded to bytes ({factors = i8}, from accuracy_level 4 of MatMulNBits), each
// block of a row by its own largest, or has them dequantised from bytes, and the CPU gains by such products,
// bytes are multiplied; the composite has their scales and starts as well. What zero points leave
// (block_weights.h) is the same for all steps of a block, and multiplies their sum:
//
//   %d = add (composite %x, %i, %s), (dot (reduce add %x by blocks), shifts times %s)
//
//   %w = dequantize %i, %s {axis = 0}                        %i : i8[64,64,1,1], constant
//   %c = convolution %x, %w : f32[1,64,28,28]        ->      %p = convolution %x, %i {result = f32}
//                                                            %c = multiply %p, broadcast(%s)
//
// A product of few rows takes as long as its weights take to come from memory: bytes come in a quarter of the
// time, and are widened in registers; of blocks all of whose integers are those of i4, in an eighth. Sums of
// blocks are scaled, rather than the weights. Of more rows columns are widened once for all (plan's
// `widened`), which takes little beside the products, and the object has the few bits.
//
// - Requires: constants folded, but not those that widen bytes; a target.
// - Establishes: dots read weights of bytes or less, but those that take less time in bf16, and convolutions
//   filters of bytes, but those that Winograd's algorithm may compute.
// - Breaks: nothing.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/times_transposed.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantization/block_weights.h"
#include "compiler/passes/quantization/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/contraction/choose_matrices.h"
#include "compiler/plan/narrow_weights.h"

#include <limits>

namespace firn {
namespace {

// x [rows..., K] times weights whose columns have a scale and a shift each.
Value by_columns(GraphBuilder& b, Value x, const BlockWeights& weights, const Type& result) {
  int64_t last = x.rank() - 1;
  Value product = times_transposed(b, x, weights.integers(b), DType::F32);
  if (weights.has_shifts()) {
    Value sums = b.reduce(Opcode::Add, x, {last}, /*keep_dims=*/false);
    Value shifts = make_broadcast(b, weights.shifts(b), result, {last});
    shifts = b.op(Opcode::Multiply, {make_broadcast(b, sums, result, first_dims(last)), shifts});
    product = b.op(Opcode::Add, {product, shifts});
  }
  Value scales = b.convert(weights.scales(b), DType::F32);
  return b.op(Opcode::Multiply, {product, make_broadcast(b, scales, result, {last})});
}

// The integers in that dtype; u4 and u8 with the offset and order in which they are multiplied by byte rows.
LiteralRef stored_as(const Literal& integers, DType dtype) {
  auto stored = std::make_shared<Literal>(dtype, integers.dims());
  std::span<const int8_t> values = integers.data<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    stored->set_int(dtype == DType::U4 ? place_of_step(at) : at, values[i] + storage_offset(dtype));
  }
  return stored;
}

// x [rows..., K] as [rows..., blocks, block].
Value in_blocks(GraphBuilder& b, Value x, int64_t blocks) {
  std::vector<Dim> dims = x.type().dims;
  dims.back() = Dim(blocks);
  dims.push_back(Dim(x.dim(x.rank() - 1) / blocks));
  return b.reshape(x, dims);
}

// Rows of x as bytes [rows..., K], with a scale for each block of a row [rows..., blocks], and start values
// of the sums over a block (compiler/graph/blocked_dot.h).
struct ByteRows {
  Value bytes, scales, starts;
  Value sums;      // sums over each block of the numbers that the bytes stand for
  double zero = 0; // a byte times its scale is so much more than the number it stands for
};
ByteRows in_bytes(GraphBuilder& b, Value x, int64_t blocks, DType integers) {
  constexpr float kLargest = 127;
  int64_t last = x.rank();
  Value wide = in_blocks(b, x, blocks);
  Value largest = b.reduce(Opcode::Maximum, b.unary(Opcode::Abs, wide), {last}, /*keep_dims=*/false);
  // Finite where the largest is 0 or nearly so: products with it stay within bytes.
  Value inverse = b.op(Opcode::Divide, {b.splat_like(largest, kLargest), largest});
  inverse = b.op(Opcode::Minimum, {inverse, b.splat_like(largest, std::numeric_limits<float>::max())});
  Value scaled = b.op(Opcode::Multiply, {wide, make_broadcast(b, inverse, wide.type(), first_dims(last))});
  Value rounded = b.unary(Opcode::RoundNearestEven, scaled);
  Value scales = b.op(Opcode::Multiply, {largest, b.splat_like(largest, 1 / kLargest)});
  Value sums = b.reduce(Opcode::Add, rounded, {last}, /*keep_dims=*/false);
  Value starts =
      b.op(Opcode::Multiply, {sums, b.splat_like(sums, -static_cast<double>(storage_offset(integers)))});
  return {b.reshape(b.convert(rounded, DType::I8), x.type().dims), scales, b.convert(starts, DType::I32),
          b.op(Opcode::Multiply, {sums, scales})};
}

// The bytes that rows are dequantised from.
ByteRows quantised_rows(GraphBuilder& b, const Dequantized& x, int64_t blocks, DType integers) {
  Quantization by = *quantization_of(x);
  Value bytes = x.integers;
  if (bytes.dtype() == DType::U8) {
    bytes = shift_like(b, bytes, {bytes, kSignShift});
    by.zero_point -= kSignShift;
  }
  Value sums = b.convert(in_blocks(b, bytes, blocks), DType::I32);
  sums = b.reduce(Opcode::Add, sums, {sums.rank() - 1}, /*keep_dims=*/false);
  Value starts = b.op(Opcode::Multiply, {sums, b.splat_like(sums, -storage_offset(integers))});
  double steps = static_cast<double>(bytes.dim(bytes.rank() - 1) / blocks);
  Value numbers = b.convert(sums, DType::F32), scales = b.splat_like(numbers, by.scale);
  double zero = static_cast<double>(by.zero_point);
  numbers = b.op(Opcode::Subtract, {numbers, b.splat_like(numbers, steps * zero)});
  return {bytes, scales, starts, b.op(Opcode::Multiply, {numbers, scales}), zero * by.scale};
}

// Whether products can take the bytes that rows are dequantised from.
bool are_bytes(const Dequantized& x, const BlockWeights& weights) {
  return bit_width(x.integers.dtype()) == 8 && !constant_literal(x.integers) && quantization_of(x) &&
         weights.has_known_scales();
}

Value by_blocks(GraphBuilder& b, Value x, const BlockWeights& weights, DType dtype) {
  Value integers = weights.integers(b);
  if (dtype != DType::I8) {
    GraphBuilder beside(b);
    beside.set_location(integers.def->location());
    integers = beside.constant(stored_as(*integers.def->literal(), dtype));
  }
  Value product, sums;
  if (storage_offset(dtype) == 0) {
    product = make_blocked_dot(b, x, integers, weights.scales(b));
    if (weights.has_shifts())
      sums = b.reduce(Opcode::Add, in_blocks(b, x, weights.blocks()), {x.rank()}, /*keep_dims=*/false);
  } else {
    auto from = dequantized(x);
    ByteRows rows = from && are_bytes(*from, weights) ? quantised_rows(b, *from, weights.blocks(), dtype)
                                                      : in_bytes(b, x, weights.blocks(), dtype);
    product = make_blocked_dot(b, rows.bytes, integers, weights.scales(b), rows.scales, rows.starts);
    if (rows.zero != 0) {
      Value totals = weights.totals(b, -rows.zero);
      product = b.op(Opcode::Add, {product, make_broadcast(b, totals, product.type(), {product.rank() - 1})});
    }
    sums = rows.sums;
  }
  if (!weights.has_shifts()) return product;
  return b.op(Opcode::Add, {product, times_transposed(b, sums, weights.shifts(b))});
}

// Whether the model lets the dot's rows be bytes.
bool bytes_suffice(const Instruction& dot) {
  const Attribute* factors = dot.attributes().find("factors");
  return factors && std::get<DType>(*factors) == DType::I8;
}

// Convolves with filters of bytes, and multiplies the result by their scale, one or one for each channel.
Value narrow_filters(Instruction& convolution, const PassOptions& options) {
  if (convolution.type().dtype != DType::F32 || !convolution.type().is_static() ||
      convolution.operand(0).dtype() != DType::F32 || options.goals.precision == Precision::BF16 ||
      !plan::is_profitable_with_narrow_filters(convolution, options.goals.optimize_size()))
    return {};
  auto from = dequantized(convolution.operand(1));
  if (!from || !from->scale) return {};
  GraphBuilder b(*convolution.parent(), &convolution);
  b.set_location(convolution.location());
  Value bytes = as_signed_bytes(b, *from);
  auto scale = channel_parameter(b, *from, from->scale);
  if (!bytes || !scale || scale->dim > 0) return {};
  Attributes attributes = convolution.attributes();
  attributes.set("result", DType::F32);
  Value product = b.op(Opcode::Convolution, {convolution.operand(0), bytes}, attributes);
  std::vector<int64_t> dims;
  if (scale->dim == 0) dims.push_back(1);
  return b.op(Opcode::Multiply, {product, make_broadcast(b, scale->source, product.type(), dims)});
}

Value narrow_columns(Instruction& dot, const PassOptions& options) {
  if (!has_bounds(dot.type()) || dot.type().dtype != DType::F32 || dot.operand(0).dtype() != DType::F32)
    return {};
  Value x = dot.operand(0);
  const Attributes& attributes = dot.attributes();
  const std::vector<int64_t>& steps = attributes.ints("rhs_contract");
  bool is_plain = attributes.ints("rhs_batch").empty() && steps.size() == 1 &&
                  attributes.ints("lhs_contract") == std::vector<int64_t>{x.rank() - 1};
  if (!is_plain || !has_bounds(x.type()) || !x.type().dims.back().is_static()) return {};
  bool few_rows = has_few_rows(dot, 1);
  if (!few_rows && options.goals.precision == Precision::BF16 &&
      plan::is_profitable_in_bf16(dot, 1, *options.target))
    return {};
  auto weights = BlockWeights::of(dot.operand(1), steps[0]);
  if (!weights) return {};
  GraphBuilder builder(*dot.parent(), &dot);
  builder.set_location(dot.location());
  if (!weights->in_blocks()) return by_columns(builder, x, *weights, dot.type());
  bool is_short = weights->fit_four_bits();
  Type integers = Type::tensor_of(is_short ? DType::U4 : DType::U8, {1, weights->blocks(), weights->block()});
  auto from = dequantized(x);
  if ((bytes_suffice(dot) || (from && are_bytes(*from, *weights))) &&
      plan::is_profitable_in_byte_rows(integers, few_rows, *options.target))
    return by_blocks(builder, x, *weights, integers.dtype);
  return by_blocks(builder, x, *weights, is_short ? DType::I4 : DType::I8);
}

Value keep_narrow(Instruction& instruction, const PassOptions& options) {
  if (options.goals.strict_math() || !instruction.type().is_tensor()) return {};
  if (instruction.is(Opcode::Convolution)) return narrow_filters(instruction, options);
  return instruction.is(Opcode::Dot) ? narrow_columns(instruction, options) : Value{};
}

} // namespace

bool keep_narrow_weights(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, keep_narrow);
}

} // namespace firn
