// keep-narrow-weights: multiplies rows by quantised weights as they are stored.
//
//   %w = multiply (convert %i), broadcast(%s)                %i : i8[768,3072], constant
//   %d = dot %x, %w : f32[1,3072]                    ->      %p = dot %x, %i {result = f32}
//                                                            %d = multiply %p, broadcast(%s)
//
//   %w = reshape (multiply (convert %i), broadcast(%s))      %i : i8[3072,24,32], %s : f32[3072,24]
//   %d = dot %x, %w : f32[1,3072]                    ->      %d = composite %x, %i, %s {name = blocked_dot}
//
// Where the model lets rows be rounded to bytes ({factors = i8}), each block of a row by its own largest, and
// the CPU gains by such products, they are; the composite has their scales and starts as well.
//
// A product of few rows takes as long as its weights take to come from memory: bytes come in a quarter of the
// time, and are widened in registers; of blocks all of whose integers are those of i4, in an eighth. Sums of
// blocks are scaled, rather than the weights. Rows are few where one tile has them all; of more, widening for
// every tile would cost more than it saves, and only rows of bytes, which are not widened, pay.
//
// - Requires: constants folded, but not those that widen bytes; a target.
// - Establishes: dots of few rows read weights of bytes or less.
// - Breaks: nothing.
#include "compiler/graph/blocked_dot.h"
#include "compiler/graph/times_transposed.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/quantized_values.h"
#include "compiler/passes/rewrite.h"
#include "compiler/plan/narrow_weights.h"

#include <algorithm>
#include <limits>

namespace firn {
namespace {

// Weights [N, K], or [N, blocks, block] that a reshape makes [N, K] of, with a scale along N or along both.
struct NarrowWeights {
  Value integers; // a constant
  Value scale;    // of rank 1 or 2
  bool in_blocks = false;
};

Value source_of(Value scale, const std::vector<int64_t>& dims) {
  bool spread = scale.def->is(Opcode::BroadcastInDim) && scale.def->attributes().ints("dims") == dims;
  return spread ? scale.def->operand(0) : Value{};
}

std::optional<NarrowWeights> narrow_weights(Value weights) {
  bool reshaped = weights.def->is(Opcode::Reshape);
  auto value = dequantized(reshaped ? weights.def->operand(0) : weights);
  if (!value || value->zero_point || value->shift != 0 || !value->scale || weights.rank() != 2 ||
      !value->integers.def->is(Opcode::Constant) || bit_width(value->integers.dtype()) != 8)
    return std::nullopt;
  const Type& type = value->integers.type();
  if (!reshaped) {
    Value scale = source_of(value->scale, {0});
    return scale ? std::optional(NarrowWeights{value->integers, scale, false}) : std::nullopt;
  }
  Value scale =
      type.rank() == 3 && type.dims[0] == weights.type().dims[0] ? source_of(value->scale, {0, 1}) : Value{};
  return scale ? std::optional(NarrowWeights{value->integers, scale, true}) : std::nullopt;
}

// x [rows..., K] times weights [N, K].
Value by_columns(GraphBuilder& builder, Value x, const NarrowWeights& weights, const Type& result) {
  int64_t last = x.rank() - 1;
  Value product = times_transposed(builder, x, weights.integers, DType::F32);
  return builder.op(Opcode::Multiply, {product, make_broadcast(builder, weights.scale, result, {last})});
}

// Whether four bits have all of the integers, whose blocks are whole words then.
bool fit_four_bits(const Literal& integers) {
  if (!has_whole_words(integers.dims().back(), DType::I4)) return false;
  std::span<const int8_t> values = integers.data<int8_t>();
  return std::all_of(values.begin(), values.end(), [](int8_t value) { return value >= -8 && value <= 7; });
}

// The integers in that type; of u4 and u8 as rows of bytes are multiplied by.
LiteralRef stored_as(const Literal& integers, DType dtype) {
  auto stored = std::make_shared<Literal>(dtype, integers.dims());
  std::span<const int8_t> values = integers.data<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    stored->set_int(dtype == DType::U4 ? place_of_step(at) : at, values[i] + distance_of(dtype));
  }
  return stored;
}

// Bytes that stand for x, each block of a row by its largest: [rows..., K], what they are to be multiplied
// by, [rows..., blocks], and where sums of them start beside integers of such a type.
struct ByteRows {
  Value bytes, scales, starts;
};
ByteRows in_bytes(GraphBuilder& b, Value x, int64_t blocks, DType integers) {
  constexpr float kLargest = 127;
  std::vector<Dim> dims = x.type().dims;
  int64_t last = x.rank(), steps = x.dim(x.rank() - 1);
  dims.back() = Dim(blocks);
  dims.push_back(Dim(steps / blocks));
  Value wide = b.reshape(x, dims);
  Value largest = b.reduce(Opcode::Maximum, b.unary(Opcode::Abs, wide), {last}, /*keep_dims=*/false);
  // Finite where the largest is 0 or nearly so: products with it stay within bytes.
  Value inverse = b.op(Opcode::Divide, {b.splat_like(largest, kLargest), largest});
  inverse = b.op(Opcode::Minimum, {inverse, b.splat_like(largest, std::numeric_limits<float>::max())});
  std::vector<int64_t> all;
  for (int64_t d = 0; d < last; ++d) all.push_back(d);
  Value scaled = b.op(Opcode::Multiply, {wide, make_broadcast(b, inverse, wide.type(), all)});
  Value rounded = b.unary(Opcode::RoundNearestEven, scaled);
  Value scales = b.op(Opcode::Multiply, {largest, b.splat_like(largest, 1 / kLargest)});
  Value sums = b.reduce(Opcode::Add, rounded, {last}, /*keep_dims=*/false);
  sums = b.op(Opcode::Multiply, {sums, b.splat_like(sums, -static_cast<double>(distance_of(integers)))});
  return {b.reshape(b.convert(rounded, DType::I8), x.type().dims), scales, b.convert(sums, DType::I32)};
}

Value by_blocks(GraphBuilder& builder, Value x, const NarrowWeights& weights, DType dtype) {
  const Instruction& constant = *weights.integers.def;
  builder.set_location(constant.location());
  Value integers =
      dtype == DType::I8 ? weights.integers : builder.constant(stored_as(*constant.literal(), dtype));
  if (distance_of(dtype) == 0) return make_blocked_dot(builder, x, integers, weights.scale);
  ByteRows rows = in_bytes(builder, x, integers.dim(1), dtype);
  return make_blocked_dot(builder, rows.bytes, integers, weights.scale, rows.scales, rows.starts);
}

// Whether the model lets the dot's rows be bytes.
bool bytes_suffice(const Instruction& dot) {
  const Attribute* factors = dot.attributes().find("factors");
  return factors && std::get<DType>(*factors) == DType::I8;
}

Value keep_narrow(Instruction& dot, const PassOptions& options) {
  if (options.strict_math || !dot.is(Opcode::Dot) || !dot.type().is_tensor() || !has_bounds(dot.type()) ||
      dot.type().dtype != DType::F32 || dot.operand(0).dtype() != DType::F32)
    return {};
  Value x = dot.operand(0);
  const Attributes& attributes = dot.attributes();
  bool plain = attributes.ints("rhs_batch").empty() &&
               attributes.ints("rhs_contract") == std::vector<int64_t>{1} &&
               attributes.ints("lhs_contract") == std::vector<int64_t>{x.rank() - 1};
  auto weights = plain ? narrow_weights(dot.operand(1)) : std::nullopt;
  if (!weights || !has_bounds(x.type()) || !x.type().dims.back().is_static()) return {};
  bool has_few_rows = x.type().is_static() && x.type().num_elements() <= plan::kFewRows * x.dim(x.rank() - 1);
  GraphBuilder builder(*dot.parent(), &dot);
  if (!weights->in_blocks) return has_few_rows ? by_columns(builder, x, *weights, dot.type()) : Value();
  Type integers = weights->integers.type();
  const Literal& literal = *weights->integers.def->literal();
  if (integers.dtype != DType::I8 || integers.num_elements() == 0) return {};
  if (!has_few_rows && (literal.is_opaque() || !bytes_suffice(dot))) return {};
  if (literal.is_opaque()) return by_blocks(builder, x, *weights, DType::I8);
  bool is_short = fit_four_bits(literal);
  integers.dtype = is_short ? DType::U4 : DType::U8;
  if (bytes_suffice(dot) && plan::gains_by_byte_rows(integers, has_few_rows, *options.target))
    return by_blocks(builder, x, *weights, integers.dtype);
  return has_few_rows ? by_blocks(builder, x, *weights, is_short ? DType::I4 : DType::I8) : Value();
}

} // namespace

bool keep_narrow_weights(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, keep_narrow);
}

} // namespace firn
