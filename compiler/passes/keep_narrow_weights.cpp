// keep-narrow-weights: multiplies few rows by quantised weights as they are stored.
//
//   %w = multiply (convert %i), broadcast(%s)                %i : i8[768,3072], constant
//   %d = dot %x, %w : f32[1,3072]                    ->      %p = dot %x, %i {result = f32}
//                                                            %d = multiply %p, broadcast(%s)
//
//   %w = reshape (multiply (convert %i), broadcast(%s))      %i : i8[3072,24,32], %s : f32[3072,24]
//   %d = dot %x, %w : f32[1,3072]                    ->      %d = composite %x, %i, %s {name = blocked_dot}
//
// Where the model lets rows be rounded to bytes ({factors = i8}), each block of a row by its own largest, and
// the CPU multiplies bytes, they are; the composite has their scales as well.
//
// A product of few rows takes as long as its weights take to come from memory: bytes come in a quarter of the
// time, and are widened in registers; of blocks all of whose integers are those of i4, in an eighth. Sums of
// blocks are scaled, rather than the weights. Rows are few where one tile has them all; of more, widening for
// every tile would cost more than it saves.
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
      !value->integers.def->is(Opcode::Constant))
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

// The integers as i4, if that has all of them.
LiteralRef in_four_bits(const Literal& integers) {
  if (integers.is_opaque() || integers.dtype() != DType::I8 ||
      !has_whole_words(integers.dims().back(), DType::I4))
    return nullptr;
  std::span<const int8_t> values = integers.data<int8_t>();
  if (!std::all_of(values.begin(), values.end(), [](int8_t value) { return value >= -8 && value <= 7; }))
    return nullptr;
  auto packed = std::make_shared<Literal>(DType::I4, integers.dims());
  for (size_t i = 0; i < values.size(); ++i) packed->set_int(static_cast<int64_t>(i), values[i]);
  return packed;
}

// Bytes that stand for x, each block of a row by its largest: [rows..., K], and what they are to be
// multiplied by, [rows..., blocks].
struct ByteRows {
  Value bytes, scales;
};
ByteRows in_bytes(GraphBuilder& b, Value x, int64_t blocks) {
  constexpr float kLargest = 127;
  std::vector<Dim> dims = x.type().dims;
  int64_t last = x.rank(), steps = x.dim(x.rank() - 1);
  dims.back() = Dim(blocks);
  dims.push_back(Dim(steps / blocks));
  Value wide = b.reshape(x, dims);
  Value largest = b.reduce(Opcode::Maximum, b.unary(Opcode::Abs, wide), {last}, /*keep_dims=*/false);
  Value zero = b.splat_like(largest, 0);
  Value inverse = b.op(Opcode::Divide, {b.splat_like(largest, kLargest), largest});
  inverse = b.op(Opcode::Select, {b.compare("eq", largest, zero), zero, inverse});
  std::vector<int64_t> all;
  for (int64_t d = 0; d < last; ++d) all.push_back(d);
  Value scaled = b.op(Opcode::Multiply, {wide, make_broadcast(b, inverse, wide.type(), all)});
  Value bytes = b.convert(b.unary(Opcode::RoundNearestEven, scaled), DType::I8);
  return {b.reshape(bytes, x.type().dims),
          b.op(Opcode::Multiply, {largest, b.splat_like(largest, 1 / kLargest)})};
}

Value by_blocks(GraphBuilder& builder, Value x, NarrowWeights weights, bool are_bytes) {
  const Instruction& constant = *weights.integers.def;
  if (LiteralRef packed = in_four_bits(*constant.literal())) {
    builder.set_location(constant.location());
    weights.integers = builder.constant(packed);
  }
  if (!are_bytes) return make_blocked_dot(builder, x, weights.integers, weights.scale);
  ByteRows rows = in_bytes(builder, x, weights.integers.type().dim(1));
  return make_blocked_dot(builder, rows.bytes, weights.integers, weights.scale, rows.scales);
}

// Whether the model lets the dot's rows be bytes.
bool bytes_suffice(const Instruction& dot) {
  const Attribute* factors = dot.attributes().find("factors");
  return factors && std::get<DType>(*factors) == DType::I8;
}

Value keep_narrow(Instruction& dot, const PassOptions& options) {
  if (options.strict_math || !dot.is(Opcode::Dot) || !dot.type().is_tensor() || !dot.type().is_static() ||
      dot.type().dtype != DType::F32 || dot.operand(0).dtype() != DType::F32)
    return {};
  Value x = dot.operand(0);
  const Attributes& attributes = dot.attributes();
  bool plain = attributes.ints("rhs_batch").empty() &&
               attributes.ints("rhs_contract") == std::vector<int64_t>{1} &&
               attributes.ints("lhs_contract") == std::vector<int64_t>{x.rank() - 1};
  auto weights = plain ? narrow_weights(dot.operand(1)) : std::nullopt;
  if (!weights || x.type().num_elements() > plan::kFewRows * x.dim(x.rank() - 1)) return {};
  const Type& integers = weights->integers.type();
  if (weights->in_blocks && (integers.dtype != DType::I8 || integers.num_elements() == 0)) return {};
  GraphBuilder builder(*dot.parent(), &dot);
  if (!weights->in_blocks) return by_columns(builder, x, *weights, dot.type());
  bool are_bytes = bytes_suffice(dot) && plan::gains_by_byte_rows(integers, *options.target);
  return by_blocks(builder, x, *weights, are_bytes);
}

} // namespace

bool keep_narrow_weights(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, keep_narrow);
}

} // namespace firn
