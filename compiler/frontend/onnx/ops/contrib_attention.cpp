// Attention and MultiHeadAttention of com.microsoft: heads from joined or packed tensors, masks by length or
// element, caches of earlier keys and values.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/frontend/onnx/ops/quantization_operators.h"
#include "compiler/graph/composites.h"

#include <cmath>
#include <functional>
#include <limits>

namespace firn::onnx {

namespace {

struct Heads {
  Value q, k, v; // [batch, heads, seq, size]; k and v with the past in front
};

// [batch, seq, heads * size] as [batch, heads, seq, size].
Value to_heads(NodeContext& node, Value x, int64_t heads, const std::string& what) {
  return node.transpose(split_heads(node, x, heads, what), {0, 2, 1, 3});
}

bool check_heads(NodeContext& node, const Heads& heads) {
  if (!heads.q || !heads.k || !heads.v || node.failed()) return false;
  const std::vector<Dim>&q = heads.q.type().dims, &k = heads.k.type().dims, &v = heads.v.type().dims;
  bool fits = q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && k[2] == v[2] && q[3] == k[3] &&
              q[3].is_static() && v[3].is_static() && q[3] != Dim(0);
  return node.check(fits, "queries " + heads.q.type().to_string() + ", keys " + heads.k.type().to_string() +
                              " and values " + heads.v.type().to_string() + " do not fit");
}

// Adds the attribute mask_filter_value where `allowed` is false.
Value penalty(NodeContext& node, Value allowed) {
  Value filter = node.scalar(DType::F32, node.float_attribute("mask_filter_value", -10000.0f));
  return node.select(allowed, node.scalar(DType::F32, 0), filter);
}

// The mask input of i32 as a term that is added to the scores. It holds lengths [batch], ends and starts [2 *
// batch], or elements [batch, keys] or [batch, queries, keys].
Value mask_penalty(NodeContext& node, int input, const Heads& heads) {
  Value mask = node.input(input);
  const Dim batch = heads.q.type().dims[0], queries = heads.q.type().dims[2], keys = heads.k.type().dims[2];
  const std::vector<Dim> dims = mask.type().dims;
  auto column = [&](Value x) { return node.reshape(x, {batch, Dim(1), Dim(1), Dim(1)}); };
  Value positions = node.iota(DType::I32, {keys}, 0);
  if (dims.size() == 1 && dims[0].extent == batch.extent * 2) {
    Value end = column(node.slice_symbolic(mask, 0, 0, batch.extent)),
          start = column(node.slice_symbolic(mask, 0, batch.extent, batch.extent));
    return penalty(node,
                   both(node, node.compare("lt", positions, end), node.compare("ge", positions, start)));
  }
  if (dims.size() == 1 && may_be_equal(dims[0], batch)) {
    Value end = column(input_with_extents(node, input, {batch}));
    return penalty(node, node.compare("lt", positions, end));
  }
  bool by_key = dims.size() == 2;
  if (!by_key && dims.size() != 3)
    return node.fail_unsupported(
               node.input_label(input) + " is " + mask.type().to_string() +
               ", wants a length per entry of the batch, or an element per key, or per query and key"),
           Value{};
  mask = input_with_extents(node, input,
                            by_key ? std::vector<Dim>{batch, keys} : std::vector<Dim>{batch, queries, keys});
  Value shaped = node.reshape(mask, {batch, Dim(1), by_key ? Dim(1) : queries, keys});
  return penalty(node, node.compare("gt", shaped, node.scalar_int(DType::I32, 0)));
}

// softmax(q k^T * scale + masks) v, as [batch, seq, heads * size].
Value attend(NodeContext& node, const Heads& heads, int mask, int bias) {
  double size = static_cast<double>(heads.q.dim(3)), given = node.float_attribute("scale", 0);
  Value scaled = times(node, heads.q, given != 0 ? given : 1 / std::sqrt(size));
  Value scores = grouped_product(node, scaled, heads.k, 3);
  if (node.has_input(mask)) scores = add(node, scores, mask_penalty(node, mask, heads));
  if (node.flag_attribute("unidirectional", false)) {
    const Dim queries = heads.q.type().dims[2], keys = heads.k.type().dims[2];
    Value past = node.binary(Opcode::Subtract, node.dim_size(heads.k, 2), node.dim_size(heads.q, 2));
    Value row = add(node, node.iota(DType::I64, {queries, Dim(1)}, 0), past);
    Value seen = node.compare("ge", row, node.iota(DType::I64, {Dim(1), keys}, 1));
    // -infinity in place of the penalty: a later key must not count as much as one that the mask excludes.
    Value hidden = node.scalar(DType::F32, -std::numeric_limits<double>::infinity());
    scores = add(node, scores, node.select(seen, node.scalar(DType::F32, 0), hidden));
  }
  if (scores && node.has_input(bias))
    scores = add(node, scores, input_with_extents(node, bias, scores.type().dims, /*stretches=*/true));
  if (!scores || node.failed()) return {};
  GraphBuilder builder = node.builder();
  Value y = grouped_product(node, make_softmax(builder, scores, 3), heads.v, 2);
  if (!y) return {};
  const std::vector<Dim> dims = y.type().dims;
  auto joined = node.product({dims[1], dims[3]});
  return joined ? node.reshape(node.transpose(y, {0, 2, 1, 3}), {dims[0], dims[2], *joined}) : Value{};
}

// Element `index` of dim `dim`, with that dim removed.
Value part(NodeContext& node, Value x, int dim, int64_t index) {
  return node.squeeze(node.slice_dim(x, dim, index, index + 1), dim);
}

// x plus columns [from, to) of the bias, which fit its last dim.
Value with_bias(NodeContext& node, Value x, int input, int64_t from, int64_t to) {
  return node.has_input(input) ? add(node, x, node.slice_dim(node.input(input), 0, from, to)) : x;
}

// Queries [batch, seq, hidden] with keys and values of their own, whose layout may be packed with others.
std::optional<Heads> read_multi_heads(NodeContext& node, int64_t count) {
  Value query = node.input(0), key = node.input(1), value = node.input(2);
  bool biased = node.has_input(3);
  Heads heads;
  if (query.rank() == 5) { // [batch, seq, heads, 3, size]
    if (!node.check(!key && !value && !biased && query.type().dims[3] == Dim(3) &&
                        query.type().dims[2] == Dim(count),
                    node.input_label(0) + " is " + query.type().to_string() +
                        ", wants queries, keys and values packed, and no other inputs"))
      return std::nullopt;
    auto packed = [&](int64_t index) { return node.transpose(part(node, query, 3, index), {0, 2, 1, 3}); };
    return Heads{packed(0), packed(1), packed(2)};
  }
  if (!node.check_rank(0, 3) || !node.check_given(1)) return std::nullopt;
  auto hidden = node.static_dim(0, 2);
  if (!hidden) return std::nullopt;
  heads.q = to_heads(node, with_bias(node, query, 3, 0, *hidden), count, node.input_label(0));
  if (key.rank() == 5) { // [batch, seq, heads, 2, size]
    if (!node.check(!value && !biased && key.type().dims[3] == Dim(2) && key.type().dims[2] == Dim(count),
                    node.input_label(1) + " is " + key.type().to_string() +
                        ", wants keys and values packed, without bias"))
      return std::nullopt;
    heads.k = node.transpose(part(node, key, 3, 0), {0, 2, 1, 3});
    heads.v = node.transpose(part(node, key, 3, 1), {0, 2, 1, 3});
    return heads;
  }
  if (!node.check(static_cast<bool>(value) && value.rank() == key.rank(),
                  "input 2 is left out, or of another rank than input 1"))
    return std::nullopt;
  if (key.rank() == 4) { // heads already, as a cache has them
    if (biased) return node.fail_unsupported("a bias with keys of rank 4"), std::nullopt;
    heads.k = key;
    heads.v = value;
    return heads;
  }
  auto last = node.check_rank(1, 3) ? node.static_dim(2, 2) : std::nullopt;
  if (!last) return std::nullopt;
  if (biased && !node.check_dims(3, {2 * *hidden + *last})) return std::nullopt;
  heads.k = to_heads(node, with_bias(node, key, 3, *hidden, 2 * *hidden), count, node.input_label(1));
  heads.v =
      to_heads(node, with_bias(node, value, 3, 2 * *hidden, 2 * *hidden + *last), count, node.input_label(2));
  return heads;
}

int64_t heads_attribute(NodeContext& node) {
  int64_t count = node.required_int("num_heads");
  node.check(count > 0 || node.failed(), "attribute num_heads is " + std::to_string(count));
  return count;
}

} // namespace

void import_multi_head_attention(NodeContext& node) {
  int64_t count = heads_attribute(node);
  if (node.failed()) return;
  auto heads = read_multi_heads(node, count);
  if (!heads || node.failed()) return;
  if (!node.check(node.has_input(6) == node.has_input(7), "past_key and past_value are wanted together"))
    return;
  if (!heads->q || !heads->k || !heads->v) return;
  const Dim batch = heads->q.type().dims[0];
  heads->k = with_batch_and_steps(node, heads->k, batch, heads->k.type().dims[2]);
  if (node.has_input(6)) heads->k = behind_past(node, 6, heads->k);
  if (node.has_input(7)) heads->v = behind_past(node, 7, heads->v);
  if (heads->k) heads->v = with_batch_and_steps(node, heads->v, batch, heads->k.type().dims[2]);
  if (!check_heads(node, *heads)) return;
  node.set_output(0, attend(node, *heads, 4, 5));
  if (node.has_output(1)) node.set_output(1, heads->k);
  if (node.has_output(2)) node.set_output(2, heads->v);
}

namespace {

// Queries, keys and values are products of one input with weights side by side, which `project` takes.
// `mask`, `past` and `bias`: the inputs of these names.
void import_packed_attention(NodeContext& node, int mask, int past, int bias,
                             const std::function<Value()>& project) {
  int64_t count = heads_attribute(node);
  if (node.failed() || !node.check_rank(0, 3) || !node.check_rank(1, 2)) return;
  if (node.flag_attribute("do_rotary", false)) return node.fail_unsupported("attribute do_rotary is set");
  if (node.flag_attribute("past_present_share_buffer", false))
    return node.fail_unsupported("attribute past_present_share_buffer is set");
  auto width = node.static_dim(1, 1);
  if (!width) return;
  Ints sizes = node.ints_attribute("qkv_hidden_sizes", {*width / 3, *width / 3, *width / 3});
  bool fits = sizes.size() == 3 && sizes[0] > 0 && sizes[1] == sizes[0] && sizes[2] > 0 &&
              sizes[0] + sizes[1] + sizes[2] == *width;
  if (!node.check(fits, "attribute qkv_hidden_sizes does not divide the " + std::to_string(*width) +
                            " columns of " + node.input_label(1)) ||
      (node.has_input(2) && !node.check_dims(2, {*width})))
    return;
  Value all = project();
  auto piece = [&](int64_t from, int64_t size) {
    return to_heads(node, node.slice_dim(all, 2, from, from + size), count, node.input_label(1));
  };
  Heads heads{piece(0, sizes[0]), piece(sizes[0], sizes[1]), piece(2 * sizes[0], sizes[2])};
  if (node.has_input(past)) {
    if (!node.check_rank(past, 5)) return;
    if (!heads.k) return;
    std::vector<Dim> wanted = node.input(past).type().dims;
    wanted[1] = heads.k.type().dims[0];
    Value before = with_extents(node, node.input(past), wanted);
    heads.k = node.concatenate({part(node, before, 0, 0), heads.k}, 2);
    heads.v = node.concatenate({part(node, before, 0, 1), heads.v}, 2);
  }
  if (!check_heads(node, heads)) return;
  node.set_output(0, attend(node, heads, mask, bias));
  if (node.has_output(1))
    node.set_output(1, node.concatenate({node.unsqueeze(heads.k, 0), node.unsqueeze(heads.v, 0)}, 0));
}

} // namespace

void import_contrib_attention(NodeContext& node) {
  import_packed_attention(node, /*mask=*/3, /*past=*/4, /*bias=*/5, [&]() -> Value {
    Value all = matrix_product(node, node.input(0), node.input(1));
    return node.has_input(2) ? add(node, all, node.input(2)) : all;
  });
}

void import_quantized_attention(NodeContext& node) {
  for (int i : {3, 6})
    if (node.has_input(i) && !node.check_scalar(i)) return;
  auto scalar = [&](int i) { return node.has_input(i) ? node.reshape_to(node.input(i), {}) : Value{}; };
  // The weights have one scale and one zero point, or one per column.
  auto per_column = [&](int i) {
    bool one =
        node.has_input(i) && node.input(i).type().is_static() && node.input(i).type().num_elements() == 1;
    return one ? scalar(i) : node.input(i);
  };
  import_packed_attention(node, /*mask=*/5, /*past=*/8, /*bias=*/9, [&] {
    return scaled_product(node, node.input(0), scalar(3), scalar(6), node.input(1), per_column(4),
                          per_column(7), node.input(2));
  });
}

} // namespace firn::onnx
