// GroupQueryAttention of com.microsoft: causal attention over a cache that grows, with rotary embeddings.
//
// Each entry of the batch has a length of its own: its earlier keys (past), and the new steps behind them.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/dims/run_values.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/graph/composites.h"
#include "compiler/support/int_expr_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace firn::onnx {

namespace {

struct Queries {
  int64_t heads = 0, kv_heads = 0, size = 0;
  Dim batch, steps, keys; // keys: in the cache afterwards
  Value q, k, v;          // [batch, steps, heads, size], new ones only
  Value past, last;       // i64 [batch]: the number of earlier keys, and the position of the last key
  Value caches[2];        // caches of keys and values, or null
};

bool is_none(const Dim& dim) {
  return dim.extent.upper_bound() <= 0;
}

bool check_attributes(NodeContext& node) {
  for (const char* name : {"qk_output", "kv_cache_bit_width"})
    if (node.int_attribute(name, 0) > 0)
      return node.fail_unsupported("attribute " + std::string(name) + " is set"), false;
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (std::string type = node.string_attribute(name, "NONE"); type != "NONE")
      return node.fail_unsupported("attribute " + std::string(name) + " is '" + type + "'"), false;
  if (node.int_attribute("causal", 1) != 1 || node.flag_attribute("sliding_window_cache", false))
    return node.fail_unsupported("attribute causal or sliding_window_cache is set to another way of masking"),
           false;
  return !node.failed();
}

// Queries, keys and values, perhaps side by side in input 0.
bool split_inputs(NodeContext& node, Queries& made) {
  auto width = node.check_rank(0, 3) ? node.static_dim(0, 2) : std::nullopt;
  if (!width) return false;
  made.batch = node.input(0).type().dims[0];
  made.steps = node.input(0).type().dims[1];
  bool packed = !node.has_input(1);
  if (!node.check(packed != node.has_input(2), "input 1 and 2 are wanted together")) return false;
  int64_t parts = packed ? made.heads + 2 * made.kv_heads : made.heads;
  bool fits = made.heads > 0 && made.kv_heads > 0 && made.heads % made.kv_heads == 0 && *width % parts == 0 &&
              *width > 0 && !is_none(made.batch) && !is_none(made.steps);
  if (!node.check(fits, node.input_label(0) + " is " + node.input(0).type().to_string() +
                            ", which does not split into " + std::to_string(parts) + " heads, or has none"))
    return false;
  made.size = *width / parts;
  auto given = [&](int input) {
    return packed ? node.input(0)
                  : input_with_extents(node, input, {made.batch, made.steps, Dim(made.kv_heads * made.size)});
  };
  auto columns = [&](Value x, int64_t from, int64_t heads) {
    Value part = packed ? node.slice_dim(x, 2, from * made.size, (from + heads) * made.size) : x;
    return node.reshape(part, {made.batch, made.steps, Dim(heads), Dim(made.size)});
  };
  made.q = columns(node.input(0), 0, made.heads);
  made.k = columns(given(1), made.heads, made.kv_heads);
  made.v = columns(given(2), made.heads + made.kv_heads, made.kv_heads);
  return !node.failed();
}

// The number of earlier keys: 0 for a prompt, which makes up the whole cache and may be padded beyond an
// entry's own length.
Value past_of(NodeContext& node, const Queries& made, Value total, const Dim& total_dim) {
  Value none = node.splat(DType::I64, {made.batch}, 0);
  if (total_dim == made.steps) return none;
  Value steps = extent_value(node, made.steps);
  Value past = subtract(node, add(node, made.last, node.scalar_int(DType::I64, 1)), steps);
  past = larger(node, past, node.scalar_int(DType::I64, 0));
  if (total_dim.is_static() && made.steps.is_static()) return past;
  return node.select(node.compare("eq", total, steps), none, past);
}

// Lengths of the cache before and afterwards.
bool read_lengths(NodeContext& node, Queries& made) {
  if (!node.check(node.has_input(3) == node.has_input(4), "past_key and past_value are wanted together"))
    return false;
  Dim held(0);
  if (node.has_input(3)) {
    if (!node.check_rank(3, 4)) return false;
    held = node.input(3).type().dims[2];
    for (int i = 0; i < 2; ++i)
      made.caches[i] =
          input_with_extents(node, 3 + i, {made.batch, Dim(made.kv_heads), held, Dim(made.size)});
  }
  if (!node.check_given(5) || !node.check_given(6)) return false;
  Value lengths = reshape_where_equal(node, node.input(5), {made.batch});
  Value total = reshape_where_equal(node, node.input(6), {});
  if (node.failed()) return false;
  total = node.convert(total, DType::I64);
  auto all = run_dim(node, 6, 0, total);
  if (!all) return false;
  if (!node.check(all->extent.upper_bound() >= made.steps.extent.lower_bound() &&
                      all->extent.lower_bound() < (int64_t{1} << 31),
                  node.input_label(6) + " is " + all->extent.to_string() + ", wants at least the " +
                      made.steps.extent.to_string() + " new steps"))
    return false;
  IntExpr more = decided_max(all->extent - held.extent, 0);
  made.keys = ImportState::with_counts({Dim(held.extent + more)})[0];
  made.last = node.convert(lengths, DType::I64);
  made.past = past_of(node, made, total, *all);
  return !node.failed();
}

// The angles of each new step, by input 9 or the steps before: rotates queries and keys.
bool rotate(NodeContext& node, Queries& made) {
  if (!node.flag_attribute("do_rotary", false)) return true;
  if (!node.check(node.has_input(7) && node.has_input(8), "do_rotary is set without cos_cache and sin_cache"))
    return false;
  Value positions =
      node.has_input(9)
          ? input_with_extents(node, 9, {made.batch, made.steps}, /*stretches=*/true)
          : add(node, node.unsqueeze(made.past, 1), node.iota(DType::I64, {Dim(1), made.steps}, 1));
  Value angles[2];
  for (int i = 0; i < 2; ++i) {
    angles[i] = node.op(Opcode::Gather, {node.input(7 + i), positions}, {{"axis", int64_t{0}}});
    bool fits = angles[i] && angles[i].rank() == 3 && angles[i].type().dims[2].is_static() &&
                angles[i].dim(2) > 0 && 2 * angles[i].dim(2) <= made.size;
    if (!node.check(fits || node.failed(), node.input_label(7 + i) + " does not give angles for heads of " +
                                               std::to_string(made.size)) ||
        node.failed())
      return false;
  }
  bool interleaved = node.flag_attribute("rotary_interleaved", false);
  made.q = rotate_heads(node, made.q, 2, angles[0], angles[1], interleaved);
  made.k = rotate_heads(node, made.k, 2, angles[0], angles[1], interleaved);
  return !node.failed();
}

// Values per entry of the batch, i64 [batch], in a shape that broadcasts to [batch, heads, steps, keys].
Value by_entry(NodeContext& node, const Queries& made, Value values) {
  return node.reshape(values, {made.batch, Dim(1), Dim(1), Dim(1)});
}

// i64 [batch, heads, steps, 3]: the coordinates of each entry's new steps in the cache.
Value places_of_steps(NodeContext& node, const Queries& made) {
  std::vector<Dim> dims{made.batch, Dim(made.kv_heads), made.steps, Dim(1)};
  Value step = add(node, by_entry(node, made, made.past),
                   node.iota(DType::I64, {Dim(1), Dim(1), made.steps, Dim(1)}, 2));
  return node.concatenate(
      {node.iota(DType::I64, dims, 0), node.iota(DType::I64, dims, 1), node.broadcast_to(step, dims)}, 3);
}

// Appends new steps [batch, steps, heads, size] to each entry's past in `cache` [batch, heads, held, size],
// which may be null.
Value grown(NodeContext& node, const Queries& made, Value steps, Value cache) {
  Value fresh = node.transpose(steps, {0, 2, 1, 3});
  if (!fresh || (!cache && made.keys == made.steps)) return fresh;
  Dim held = cache ? cache.type().dims[2] : Dim(0);
  Dim more = ImportState::with_counts({Dim(made.keys.extent - held.extent)})[0];
  Value whole = cache;
  if (!is_none(more)) {
    Value room = node.splat(DType::F32, {made.batch, Dim(made.kv_heads), more, Dim(made.size)}, 0);
    whole = cache ? node.concatenate({cache, room}, 2) : room;
  }
  if (made.batch == Dim(1)) {
    Value zero = node.scalar_int(DType::I64, 0), start = node.reshape_to(made.past, {});
    return node.op(Opcode::DynamicUpdateSlice, {whole, fresh, zero, zero, start, zero});
  }
  Value all = node.op(Opcode::ScatterND, {whole, places_of_steps(node, made), fresh});
  // Elements behind the shorter entries are set to 0.
  Value end = add(node, by_entry(node, made, made.past), extent_value(node, made.steps));
  Value used = node.compare("lt", node.iota(DType::I64, {made.keys, Dim(1)}, 0), end);
  return node.select(used, all, node.scalar(DType::F32, 0));
}

// The mask that is added to scores, [batch, 1, steps, keys]: -infinity for keys that a query does not see,
// else 0.
Value hidden_keys(NodeContext& node, const Queries& made) {
  Value column = by_entry(node, made, made.past);
  // Padding steps of an entry that is shorter than the prompt see what its last step sees.
  Value last = by_entry(node, made, made.last);
  Value row = smaller(node, add(node, column, node.iota(DType::I64, {made.steps, Dim(1)}, 0)), last);
  Value key = node.iota(DType::I64, {Dim(1), made.keys}, 1);
  Value seen = node.compare("ge", row, key);
  int64_t window = node.int_attribute("local_window_size", -1);
  if (window >= 0)
    seen =
        both(node, seen, node.compare("lt", subtract(node, row, key), node.scalar_int(DType::I64, window)));
  Value masked = node.scalar(DType::F32, -std::numeric_limits<double>::infinity());
  return node.select(seen, node.scalar(DType::F32, 0), masked);
}

// The sink of each head, input 11 or 0, is a key before all others that has a score in every row, and whose
// value is 0.
bool add_sink(NodeContext& node, const Queries& made, Value& scores, Value& values) {
  bool is_given = node.has_input(11);
  if (!is_given && node.int_attribute("smooth_softmax", 0) <= 0) return true;
  std::vector<Dim> one_key = scores.type().dims, one_value = values.type().dims;
  one_key[3] = one_value[2] = Dim(1);
  Value sink = node.splat(DType::F32, one_key, 0);
  if (is_given) {
    Value by_head = input_with_extents(node, 11, {Dim(made.heads)});
    if (by_head)
      sink = node.broadcast_to(node.reshape(by_head, {Dim(1), one_key[1], Dim(1), Dim(1)}), one_key);
  }
  if (node.failed()) return false;
  scores = node.concatenate({sink, scores}, 3);
  values = node.concatenate({node.splat(DType::F32, one_value, 0), values}, 2);
  return !node.failed();
}

} // namespace

void import_group_query_attention(NodeContext& node) {
  Queries made;
  made.heads = node.required_int("num_heads");
  made.kv_heads = node.required_int("kv_num_heads");
  if (!check_attributes(node) || !split_inputs(node, made) || !read_lengths(node, made) ||
      !rotate(node, made))
    return;
  double given = node.float_attribute("scale", 0), softcap = node.float_attribute("softcap", 0);
  double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(made.size));
  Value keys = grown(node, made, made.k, made.caches[0]), values = grown(node, made, made.v, made.caches[1]);
  Value scores = grouped_product(node, times(node, node.transpose(made.q, {0, 2, 1, 3}), scale), keys, 3);
  if (softcap > 0) scores = times(node, node.unary(Opcode::Tanh, times(node, scores, 1 / softcap)), softcap);
  if (scores && node.has_input(10))
    scores = add(node, scores, input_with_extents(node, 10, scores.type().dims, /*stretches=*/true));
  scores = add(node, scores, hidden_keys(node, made));
  Value weighed = values;
  if (!scores || node.failed() || !add_sink(node, made, scores, weighed)) return;
  GraphBuilder builder = node.builder();
  Value y = grouped_product(node, make_softmax(builder, scores, 3), weighed, 2);
  node.set_output(0, node.reshape(node.transpose(y, {0, 2, 1, 3}),
                                  {made.batch, made.steps, Dim(made.heads * made.size)}));
  if (node.has_output(1)) node.set_output(1, keys);
  if (node.has_output(2)) node.set_output(2, values);
}

} // namespace firn::onnx
