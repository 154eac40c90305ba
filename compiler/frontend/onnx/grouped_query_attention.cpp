// GroupQueryAttention of com.microsoft: causal attention over a cache that grows, with rotary embeddings.
//
// Each entry of the batch has a length of its own: what came before (past), and the new steps behind it.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/attention.h"
#include "compiler/frontend/onnx/import_state.h"
#include "compiler/frontend/onnx/meeting_extents.h"
#include "compiler/graph/composites.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace firn::onnx {

namespace {

// New entries are put behind the past of each entry of the batch on its own.
constexpr int64_t kMaxBatch = 256;

struct Queries {
  int64_t batch, steps, heads, kv_heads, size, keys; // keys: of the cache afterwards
  Value q, k, v;                                     // [batch, steps, heads, size], new ones only
  Value past;                                        // i64 [batch], how many keys there were
  Value caches[2];                                   // of keys and values, perhaps none
};

bool check_attributes(NodeContext& node) {
  for (const char* name : {"smooth_softmax", "qk_output", "kv_cache_bit_width"})
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
  auto dims = node.check_rank(0, 3) ? node.static_dims(0) : std::nullopt;
  if (!dims) return false;
  made.batch = (*dims)[0];
  made.steps = (*dims)[1];
  bool packed = !node.has_input(1);
  if (!node.check(packed != node.has_input(2), "input 1 and 2 are wanted together")) return false;
  int64_t parts = packed ? made.heads + 2 * made.kv_heads : made.heads;
  bool fits = made.heads > 0 && made.kv_heads > 0 && made.heads % made.kv_heads == 0 &&
              (*dims)[2] % parts == 0 && (*dims)[2] > 0 && made.batch > 0 && made.batch <= kMaxBatch &&
              made.steps > 0;
  if (!node.check(fits, node.input_label(0) + " is " + node.input(0).type().to_string() +
                            ", which does not split into " + std::to_string(parts) +
                            " heads, or has a batch of none or more than " + std::to_string(kMaxBatch)))
    return false;
  made.size = (*dims)[2] / parts;
  int64_t width = made.kv_heads * made.size;
  auto given = [&](int input) {
    return packed ? node.input(0)
                  : input_with_extents(node, input, {Dim(made.batch), Dim(made.steps), Dim(width)});
  };
  auto columns = [&](Value x, int64_t from, int64_t heads) {
    Value part = packed ? node.slice_dim(x, 2, from * made.size, (from + heads) * made.size) : x;
    return node.reshape_to(part, {made.batch, made.steps, heads, made.size});
  };
  made.q = columns(node.input(0), 0, made.heads);
  made.k = columns(given(1), made.heads, made.kv_heads);
  made.v = columns(given(2), made.heads + made.kv_heads, made.kv_heads);
  return !node.failed();
}

// Lengths of the cache before and afterwards.
bool read_lengths(NodeContext& node, Queries& made) {
  if (!node.check(node.has_input(3) == node.has_input(4), "past_key and past_value are wanted together"))
    return false;
  int64_t held = 0;
  if (node.has_input(3)) {
    auto length = node.check_rank(3, 4) ? node.static_dim(3, 2) : std::nullopt;
    if (!length) return false;
    for (int i = 0; i < 2; ++i)
      made.caches[i] = input_with_extents(
          node, 3 + i, {Dim(made.batch), Dim(made.kv_heads), Dim(*length), Dim(made.size)});
    held = *length;
  }
  if (!node.check(node.has_input(5) && node.has_input(6), "input 5 or 6, a length, is left out"))
    return false;
  Value lengths = reshape_where_equal(node, node.input(5), {Dim(made.batch)});
  if (node.failed()) return false;
  auto total = node.required_constant_ints(6);
  if (!total ||
      !node.check(total->size() == 1 && (*total)[0] >= made.steps && (*total)[0] < (int64_t{1} << 31),
                  node.input_label(6) + " wants one number of at least " + std::to_string(made.steps)))
    return false;
  made.keys = std::max(held, (*total)[0]);
  if ((*total)[0] == made.steps) { // a prompt, perhaps shorter than its steps
    made.past = node.splat(DType::I64, {Dim(made.batch)}, 0);
    return true;
  }
  Value past = add(node, node.convert(lengths, DType::I64), node.scalar_int(DType::I64, 1 - made.steps));
  made.past = larger(node, past, node.scalar_int(DType::I64, 0));
  return true;
}

// The angles of each new step, by input 9 or the steps before: rotates queries and keys.
bool rotate(NodeContext& node, Queries& made) {
  if (!node.flag_attribute("do_rotary", false)) return true;
  if (!node.check(node.has_input(7) && node.has_input(8), "do_rotary is set without cos_cache and sin_cache"))
    return false;
  Value positions = node.input(9);
  if (!positions)
    positions = add(node, node.unsqueeze(made.past, 1), node.iota(DType::I64, {Dim(1), Dim(made.steps)}, 1));
  Value angles[2];
  for (int i = 0; i < 2; ++i) {
    angles[i] = node.op(Opcode::Gather, {node.input(7 + i), positions}, {{"axis", int64_t{0}}});
    bool fits = angles[i] && angles[i].rank() == 3 && angles[i].type().is_static() && angles[i].dim(2) > 0 &&
                2 * angles[i].dim(2) <= made.size && angles[i].dim(1) == made.steps;
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

// New steps [batch, steps, heads, size] behind the past in `cache` [batch, heads, held, size], if there is
// one.
Value grown(NodeContext& node, const Queries& made, Value steps, Value cache) {
  Value fresh = node.transpose(steps, {0, 2, 1, 3});
  if (!fresh) return {};
  Ints high{0, 0, made.keys - made.steps, 0}, none(4, 0);
  if (!cache)
    return made.keys == made.steps ? fresh : node.pad(fresh, node.scalar(DType::F32, 0), none, high);
  high[2] = made.keys - cache.dim(2);
  Value whole = high[2] == 0 ? cache : node.pad(cache, node.scalar(DType::F32, 0), none, high);
  Values entries;
  Value zero = node.scalar_int(DType::I64, 0);
  for (int64_t b = 0; b < made.batch; ++b) {
    Value start = node.reshape_to(node.slice_dim(made.past, 0, b, b + 1), {});
    entries.push_back(
        node.op(Opcode::DynamicUpdateSlice, {node.slice_dim(whole, 0, b, b + 1),
                                             node.slice_dim(fresh, 0, b, b + 1), zero, zero, start, zero}));
  }
  if (made.batch == 1) return entries[0];
  // What lies behind the shorter entries is nobody's.
  Value end =
      node.reshape_to(add(node, made.past, node.scalar_int(DType::I64, made.steps)), {made.batch, 1, 1, 1});
  Value used = node.compare("lt", node.iota(DType::I64, {Dim(made.keys), Dim(1)}, 0), end);
  return node.select(used, node.concatenate(entries, 0), node.scalar(DType::F32, 0));
}

// What is added to the scores of keys that a query does not see: [batch, 1, steps, keys].
Value hidden_keys(NodeContext& node, const Queries& made) {
  Value column = node.reshape_to(made.past, {made.batch, 1, 1, 1});
  Value row = add(node, column, node.iota(DType::I64, {Dim(made.steps), Dim(1)}, 0));
  Value key = node.iota(DType::I64, {Dim(1), Dim(made.keys)}, 1);
  Value seen = node.compare("ge", row, key);
  int64_t window = node.int_attribute("local_window_size", -1);
  if (window >= 0)
    seen =
        both(node, seen, node.compare("lt", subtract(node, row, key), node.scalar_int(DType::I64, window)));
  Value masked = node.scalar(DType::F32, -std::numeric_limits<double>::infinity());
  return node.select(seen, node.scalar(DType::F32, 0), masked);
}

} // namespace

void import_group_query_attention(NodeContext& node) {
  Queries made{};
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
  if (!scores || node.failed()) return;
  GraphBuilder builder = node.builder();
  Value y = grouped_product(node, make_softmax(builder, scores, 3), values, 2);
  node.set_output(
      0, node.reshape_to(node.transpose(y, {0, 2, 1, 3}), {made.batch, made.steps, made.heads * made.size}));
  if (node.wants_output(1)) node.set_output(1, keys);
  if (node.wants_output(2)) node.set_output(2, values);
}

} // namespace firn::onnx
