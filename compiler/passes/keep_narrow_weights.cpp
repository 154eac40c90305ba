// keep-narrow-weights: multiplies few rows by quantised weights as they are stored.
//
//   %w = multiply (convert %i), broadcast(%s)                %i : i8[768,3072], constant
//   %d = dot %x, %w : f32[1,3072]                    ->      %p = dot %x, %i {result = f32}
//                                                            %d = multiply %p, broadcast(%s)
//
//   %w = reshape (multiply (convert %i), broadcast(%s))      %i : i8[3072,24,32], %s : f32[3072,24]
//   %d = dot %x, %w : f32[1,3072]                    ->      %p = dot (reshape %x), %i : f32[24,1,3072]
//                                                            %d = reduce (multiply %p, transpose(%s))
//
// A product of few rows takes as long as its weights take to come from memory: bytes come in a quarter of the
// time, and are widened in registers. Sums of blocks are scaled, rather than the weights: what they write is
// little beside the weights that they read. Rows are few where one tile has them all; of more, widening for
// every tile would cost more than it saves.
//
// - Requires: constants folded, but not those that widen bytes; a target.
// - Establishes: dots of few rows read weights of bytes.
// - Breaks: nothing.
#include "compiler/passes/passes.h"
#include "compiler/passes/quantized_values.h"
#include "compiler/passes/rewrite.h"

namespace firn {
namespace {

constexpr int64_t kFewRows = 4;

// Weights [N, K], or [N, blocks, block] that a reshape makes [N, K] of, with a scale along N or along both.
struct NarrowWeights {
  Value integers;
  Value scale; // of rank 1 or 2
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

Attributes dot_attributes(std::vector<int64_t> lhs_batch, std::vector<int64_t> lhs_contract,
                          std::vector<int64_t> rhs_batch, std::vector<int64_t> rhs_contract) {
  return {{"lhs_batch", std::move(lhs_batch)},
          {"lhs_contract", std::move(lhs_contract)},
          {"rhs_batch", std::move(rhs_batch)},
          {"rhs_contract", std::move(rhs_contract)},
          {"result", DType::F32}};
}

// x [rows..., K] times weights [N, K].
Value by_columns(GraphBuilder& builder, Value x, const NarrowWeights& weights, const Type& result) {
  int64_t last = x.rank() - 1;
  Value product = builder.op(Opcode::Dot, {x, weights.integers}, dot_attributes({}, {last}, {}, {1}));
  return builder.op(Opcode::Multiply, {product, make_broadcast(builder, weights.scale, result, {last})});
}

Value by_blocks(GraphBuilder& builder, Value x, const NarrowWeights& weights) {
  int64_t last = x.rank() - 1;
  std::vector<Dim> dims = x.type().dims;
  dims.back() = weights.integers.type().dims[1];
  dims.push_back(weights.integers.type().dims[2]);
  Value product = builder.op(Opcode::Dot, {builder.reshape(x, dims), weights.integers},
                             dot_attributes({last}, {last + 1}, {1}, {2}));
  Value scale = builder.transpose(weights.scale, {1, 0});
  product = builder.op(Opcode::Multiply,
                       {product, make_broadcast(builder, scale, product.type(), {0, product.rank() - 1})});
  return builder.reduce(Opcode::Add, product, {0}, false);
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
  if (!weights || x.type().num_elements() > kFewRows * x.dim(x.rank() - 1)) return {};
  GraphBuilder builder(*dot.parent(), &dot);
  return weights->in_blocks ? by_blocks(builder, x, *weights) : by_columns(builder, x, *weights, dot.type());
}

} // namespace

bool keep_narrow_weights(Module& module, const PassOptions& options) {
  return rewrite_module(module, options, keep_narrow);
}

} // namespace firn
