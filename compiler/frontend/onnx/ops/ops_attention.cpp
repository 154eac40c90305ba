// Importers of attention.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/operator_table.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/graph/composites.h"

#include <cmath>
#include <limits>

namespace firn::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- Attention.

struct Heads {
  Value q, k, v;       // [batch, heads, seq, size], in f32 or f64; k and v with the past in front
  bool joined = false; // the node's tensors are [batch, seq, heads * size]
  Value keys, values;  // k and v in the node's dtypes
};

std::optional<Heads> read_heads(NodeContext& node) {
  int rank = node.input(0).rank();
  if (!node.check(rank == 3 || rank == 4,
                  node.input_label(0) + " has rank " + std::to_string(rank) + ", wants 3 or 4") ||
      !node.check_rank(1, rank) || !node.check_rank(2, rank))
    return std::nullopt;
  Heads heads{node.input(0), node.input(1), node.input(2), rank == 3, {}, {}};
  if (heads.joined) {
    int64_t q_heads = node.required_int("q_num_heads"), kv_heads = node.required_int("kv_num_heads");
    if (node.failed()) return std::nullopt;
    auto split = [&](Value x, int64_t count, int input) {
      return node.transpose(split_heads(node, x, count, node.input_label(input)), {0, 2, 1, 3});
    };
    heads.q = split(heads.q, q_heads, 0);
    heads.k = split(heads.k, kv_heads, 1);
    heads.v = split(heads.v, kv_heads, 2);
  }
  if (!node.check(node.has_input(4) == node.has_input(5), "past_key and past_value are wanted together"))
    return std::nullopt;
  if (!heads.q || !heads.k || !heads.v) return std::nullopt;
  const Dim batch = heads.q.type().dims[0];
  heads.k = with_batch_and_steps(node, heads.k, batch, heads.k.type().dims[2]);
  if (node.has_input(4)) heads.k = behind_past(node, 4, heads.k);
  if (node.has_input(5)) heads.v = behind_past(node, 5, heads.v);
  if (!heads.k || !heads.v) return std::nullopt;
  heads.v = with_batch_and_steps(node, heads.v, batch, heads.k.type().dims[2]);
  if (node.failed()) return std::nullopt;
  heads.keys = heads.k;
  heads.values = heads.v;
  DType work = heads.q.dtype() == DType::F64 ? DType::F64 : DType::F32;
  for (Value* x : {&heads.q, &heads.k, &heads.v}) *x = node.convert(*x, work);
  if (node.failed()) return std::nullopt;
  for (Value x : {heads.q, heads.k, heads.v})
    if (!node.check(x.type().dims[1].is_static() && x.type().dims[3].is_static() &&
                        x.type().dims[1] != Dim(0),
                    "heads and head sizes must be static, found " + x.type().to_string()))
      return std::nullopt;
  if (!node.check(heads.q.dim(1) % heads.k.dim(1) == 0 && heads.k.dim(1) == heads.v.dim(1),
                  std::to_string(heads.q.dim(1)) + " query heads for " + std::to_string(heads.k.dim(1)) +
                      " key heads and " + std::to_string(heads.v.dim(1)) + " value heads"))
    return std::nullopt;
  return heads;
}

// The number of keys of each entry of the batch, i64[batch, 1, 1, 1].
Value cache_lengths(NodeContext& node, const Heads& heads) {
  const Dim batch = heads.q.type().dims[0];
  return node.reshape(node.convert(input_with_extents(node, 6, {batch}), DType::I64),
                      {batch, Dim(1), Dim(1), Dim(1)});
}

// Positions of queries minus positions of keys, as [q, kv], or [batch, 1, q, kv] with lengths of a cache
// given.
Value distances(NodeContext& node, const Heads& heads) {
  const Dim q = heads.q.type().dims[2], kv = heads.k.type().dims[2];
  Value rows = node.iota(DType::I64, {q, Dim(1)}, 0), columns = node.iota(DType::I64, {Dim(1), kv}, 1);
  Value offset;
  if (node.has_input(4)) {
    offset = node.dim_size(node.input(4), 2);
  } else if (node.has_input(6)) {
    offset = node.binary(Opcode::Subtract, cache_lengths(node, heads), node.dim_size(heads.q, 2));
  }
  if (offset) rows = add(node, rows, offset);
  return node.binary(Opcode::Subtract, rows, columns);
}

// The mask input, bools or terms of the scores, padded to the number of keys: missing keys are masked.
Value padded_mask(NodeContext& node, const Heads& heads) {
  Value mask = node.input(3);
  if (mask.dtype() != DType::Bool) mask = node.convert(mask, heads.q.dtype());
  const Dim kv = heads.k.type().dims[2];
  if (!node.check(mask.rank() >= 1 && mask.rank() <= 4,
                  node.input_label(3) + " is " + mask.type().to_string() + ", wants rank 1 to 4"))
    return {};
  const Dim last = mask.type().dims.back();
  if (last.is_static() && kv.is_static() && last.value() != 1 && last.value() < kv.value()) {
    Ints low(static_cast<size_t>(mask.rank()), 0), high = low;
    high.back() = kv.value() - last.value();
    mask = node.pad(mask, node.scalar(mask.dtype(), mask.dtype() == DType::Bool ? 0 : -kInfinity), low, high);
  }
  const std::vector<Dim> q = heads.q.type().dims;
  return with_extents(node, mask, {q[0], q[1], q[2], kv}, /*stretches=*/true);
}

// The bias that is added to the scores: 0 or the mask where attention is allowed, -infinity elsewhere. Null
// if there is none.
Value attention_bias(NodeContext& node, const Heads& heads) {
  DType dtype = heads.q.dtype();
  Value allowed, bias;
  auto also = [&](Value condition) {
    allowed = allowed ? node.binary(Opcode::And, allowed, condition) : condition;
  };
  Value distance;
  auto bounded = [&](const char* direction, int64_t bound) {
    if (!distance) distance = distances(node, heads);
    also(node.compare(direction, distance, node.scalar_int(DType::I64, bound)));
  };
  if (node.flag_attribute("is_causal", false)) bounded("ge", 0);
  int64_t left = node.int_attribute("left_window_size", -1),
          right = node.int_attribute("right_window_size", -1);
  if (left >= 0) bounded("le", left);
  if (right >= 0) bounded("ge", -right);
  if (node.has_input(6)) {
    const Dim kv = heads.k.type().dims[2];
    also(node.compare("lt", node.iota(DType::I64, {kv}, 0), cache_lengths(node, heads)));
  }
  if (node.has_input(3)) {
    Value mask = padded_mask(node, heads);
    if (!mask) return {};
    if (mask.dtype() == DType::Bool)
      also(mask);
    else
      bias = mask;
  }
  if (!allowed) return bias;
  Value masked = node.scalar(dtype, -kInfinity);
  return node.select(allowed, bias ? bias : node.scalar(dtype, 0), masked);
}

// Whether a row may have no key that is allowed: causality alone always leaves the first key.
bool may_mask_rows(NodeContext& node) {
  return node.has_input(3) || node.has_input(6) || node.int_attribute("left_window_size", -1) >= 0 ||
         node.int_attribute("right_window_size", -1) >= 0;
}

// Softmax of scores + bias; rows that the bias masks entirely become 0.
Value online_softmax(NodeContext& node, Value scores, Value bias) {
  DType precision = node.dtype_attribute("softmax_precision").value_or(scores ? scores.dtype() : DType::F32);
  Value wide = node.convert(scores, precision);
  if (!wide) return {};
  if (!node.check(is_float(precision), "attribute softmax_precision is no float type")) return {};
  GraphBuilder builder = node.builder();
  Value weights = make_softmax(builder, wide, 3);
  if (bias && may_mask_rows(node)) {
    Value largest = node.reduce(Opcode::Maximum, bias, {bias.rank() - 1}, true);
    Value empty = node.compare("eq", largest, node.scalar(bias.dtype(), -kInfinity));
    weights = node.select(empty, node.scalar(precision, 0), weights);
  }
  return weights;
}

void import_attention(NodeContext& node) {
  auto heads = read_heads(node);
  if (!heads) return;
  double scale = node.has_attribute("scale") ? node.float_attribute("scale", 1)
                                             : 1 / std::sqrt(static_cast<double>(heads->q.dim(3)));
  double softcap = node.float_attribute("softcap", 0);
  int64_t mode = node.int_attribute("qk_matmul_output_mode", 0);
  if (!node.check(mode >= 0 && mode <= 3,
                  "attribute qk_matmul_output_mode is " + std::to_string(mode) + ", wants 0 to 3"))
    return;
  Value scores = grouped_product(node, times(node, heads->q, scale), heads->k, 3);
  Value shown = scores;
  if (softcap > 0 && scores)
    scores = times(node, node.unary(Opcode::Tanh, times(node, scores, 1 / softcap)), softcap);
  if (mode == 1) shown = scores;
  Value bias = attention_bias(node, *heads);
  if (bias) scores = add(node, scores, bias);
  if (mode == 2) shown = scores;
  Value weights = online_softmax(node, scores, bias);
  if (!weights) return;
  weights = node.convert(weights, heads->q.dtype());
  if (mode == 3) shown = weights;
  Value y = grouped_product(node, weights, heads->v, 2);
  if (heads->joined && y) {
    const std::vector<Dim> dims = y.type().dims;
    y = node.reshape(node.transpose(y, {0, 2, 1, 3}),
                     {dims[0], dims[2], Dim(dims[1].value() * dims[3].value())});
  }
  DType dtype = node.input(0).dtype();
  node.set_output(0, node.convert(y, dtype));
  if (node.has_output(1)) node.set_output(1, heads->keys);
  if (node.has_output(2)) node.set_output(2, heads->values);
  if (node.has_output(3)) node.set_output(3, node.convert(shown, dtype));
}

constexpr const char* kContrib = "com.microsoft";

const OperatorRow kRows[] = {
    {"", "Attention", 23, kLatest, 3, 7, 1, 4, "T=float T V=float num|bool T V i64", import_attention,
     "scaled dot-product attention with masks, caches and grouped heads"},
    {"", "CausalConvWithState", 27, kLatest, 2, 4, 2, 2, "T=float T", import_causal_conv_with_state,
     "depthwise causal convolution that continues from a state"},
    {"", "LinearAttention", 27, kLatest, 3, 6, 2, 2, "float", import_linear_attention,
     "attention by a recurrent state per head, with decay and delta rule"},
    {"ai.onnx.preview", "FlexAttention", 1, kLatest, 3, 3, 1, 1, "T=float T T", import_flex_attention,
     "attention with scores and probabilities changed by subgraphs"},
    {kContrib, "Attention", 1, kLatest, 2, 6, 1, 2, "T=f32|f16|bf16 T T i32 T T", import_contrib_attention,
     "attention with the products that make queries, keys and values", NarrowFloats::Widened},
    {kContrib, "GroupQueryAttention", 1, kLatest, 1, 12, 1, 3, "T=f32|f16|bf16 T T T T i32 i32 T T i64 T T",
     import_group_query_attention,
     "causal attention over a cache that grows, behind a past that each entry of the batch has of its own",
     NarrowFloats::Widened},
    {kContrib, "MultiHeadAttention", 1, kLatest, 1, 8, 1, 3, "T=f32|f16|bf16 T T T i32 T T T",
     import_multi_head_attention, "attention of queries, keys and values with masks and caches",
     NarrowFloats::Widened},
    {kContrib, "RotaryEmbedding", 1, kLatest, 4, 4, 1, 1, "T=float i64 T T", import_contrib_rotary_embedding,
     "rotates pairs of features by position", NarrowFloats::Widened},
    {"", "RotaryEmbedding", 23, kLatest, 3, 4, 1, 1, "T=float T T i64", import_rotary_embedding,
     "rotates pairs of features by position", NarrowFloats::Widened},
};

} // namespace

// [batch, seq, heads * size] as [batch, seq, heads, size]; fails unless the last extent divides.
Value split_heads(NodeContext& node, Value x, int64_t heads, const std::string& what) {
  if (!x) return x;
  const std::vector<Dim> dims = x.type().dims;
  bool divides = heads > 0 && dims.size() == 3 && dims[2].is_static() && dims[2].value() % heads == 0;
  if (!node.check(divides, what + " is " + x.type().to_string() + ", which does not split into " +
                               std::to_string(heads) + " heads"))
    return {};
  return node.reshape(x, {dims[0], dims[1], Dim(heads), Dim(dims[2].value() / heads)});
}

Value with_batch_and_steps(NodeContext& node, Value x, const Dim& batch, const Dim& steps) {
  if (!x || x.rank() != 4) return x;
  const std::vector<Dim> dims = x.type().dims;
  return with_extents(node, x, {batch, dims[1], steps, dims[3]});
}

Value behind_past(NodeContext& node, int past, Value x) {
  Value before = node.input(past);
  if (!x || !node.check_rank(past, 4)) return {};
  before = with_batch_and_steps(node, before, x.type().dims[0], before.type().dims[2]);
  return node.concatenate({before, x}, 2);
}

// lhs [batch, heads, m, n] times rhs [batch, kv_heads, ...], summed over lhs's last dim and rhs's dim
// `contract`. Groups of query heads share a key head, so lhs is split by groups instead of repeating rhs.
Value grouped_product(NodeContext& node, Value lhs, Value rhs, int64_t contract) {
  if (!lhs || !rhs) return {};
  const std::vector<Dim> l = lhs.type().dims, r = rhs.type().dims;
  Dim free = r[contract == 3 ? 2 : 3];
  if (l[1] == r[1]) return dot(node, lhs, rhs, {0, 1}, {0, 1}, {3}, {contract});
  Dim group(l[1].value() / r[1].value());
  Value grouped = node.reshape(lhs, {l[0], r[1], group, l[2], l[3]});
  return node.reshape(dot(node, grouped, rhs, {0, 1}, {0, 1}, {4}, {contract}), {l[0], l[1], l[2], free});
}

std::span<const OperatorRow> attention_operators() {
  return kRows;
}

} // namespace firn::onnx
