// Linear attention, and the causal convolution that goes with it: operators that carry a state from call to
// call.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"
#include "compiler/frontend/onnx/ops/matrix_product.h"
#include "compiler/graph/composites.h"

#include <cmath>

namespace firn::onnx {

namespace {

// --- Linear attention: a state per head, updated and read step by step.

struct LinearHeads {
  int64_t q_heads = 0, kv_heads = 0;
  int64_t key = 0, value = 0; // elements of a head's key and of its value
  bool gated = false;         // the state decays at every step
  bool corrected = false;     // delta rule: what the state holds for a key is subtracted before it is written
  double scale = 1;           // factor of what a query reads
};

// Reads the attributes and checks them against the inputs; nothing after a failure.
std::optional<LinearHeads> read_linear_heads(NodeContext& node) {
  for (int i = 0; i < 3; ++i)
    if (!node.check_rank(i, 3)) return std::nullopt;
  LinearHeads heads;
  heads.q_heads = node.required_int("q_num_heads");
  heads.kv_heads = node.required_int("kv_num_heads");
  std::string rule =
      node.choice_attribute("update_rule", "gated_delta", {"linear", "gated", "delta", "gated_delta"});
  auto q = node.static_dim(0, 2), k = node.static_dim(1, 2), v = node.static_dim(2, 2);
  if (!q || !k || !v || node.failed()) return std::nullopt;
  heads.gated = rule == "gated" || rule == "gated_delta";
  heads.corrected = rule == "delta" || rule == "gated_delta";
  bool fits = heads.q_heads > 0 && heads.kv_heads > 0 && heads.q_heads % heads.kv_heads == 0 &&
              *q % heads.q_heads == 0 && *k % heads.kv_heads == 0 && *v % heads.kv_heads == 0 &&
              *q / heads.q_heads == *k / heads.kv_heads;
  if (!node.check(fits, "heads do not fit query, key and value") ||
      !node.check(heads.gated == node.has_input(4),
                  "update rule " + rule + (heads.gated ? " wants" : " takes no") + " decay") ||
      !node.check(heads.corrected == node.has_input(5),
                  "update rule " + rule + (heads.corrected ? " wants" : " takes no") + " beta"))
    return std::nullopt;
  heads.key = *k / heads.kv_heads;
  heads.value = *v / heads.kv_heads;
  heads.scale = node.float_attribute("scale", 0);
  if (heads.scale == 0) heads.scale = 1 / std::sqrt(static_cast<double>(heads.key));
  return heads;
}

// An input [batch, time, n] as f32, once its batch and time are found to be those of the queries.
Value with_own_width(NodeContext& node, int input) {
  Value x = node.input(input);
  const std::vector<Dim>& first = node.input(0).type().dims;
  if (x && x.rank() == 3) x = input_with_extents(node, input, {first[0], first[1], x.type().dims[2]});
  return node.convert(x, DType::F32);
}

// An input [batch, time, n] as f32 [batch, time, heads, n / heads].
Value time_major_heads(NodeContext& node, int input, int64_t heads) {
  return split_heads(node, with_own_width(node, input), heads, node.input_label(input));
}

} // namespace

void import_linear_attention(NodeContext& node) {
  auto heads = read_linear_heads(node);
  if (!heads) return;
  const Dim batch = node.input(0).type().dims[0], time = node.input(0).type().dims[1];
  Value q = time_major_heads(node, 0, heads->q_heads), k = time_major_heads(node, 1, heads->kv_heads);
  Value v = time_major_heads(node, 2, heads->kv_heads);
  Value decay = heads->gated ? time_major_heads(node, 4, heads->kv_heads) : Value{};
  Value beta;
  if (heads->corrected && node.check_rank(5, 3)) beta = node.unsqueeze(with_own_width(node, 5), 3);
  std::vector<Dim> state_dims{batch, Dim(heads->kv_heads), Dim(heads->key), Dim(heads->value)};
  Value state = node.has_input(3) ? node.convert(input_with_extents(node, 3, state_dims), DType::F32)
                                  : node.splat(DType::F32, state_dims, 0);
  Value outputs = node.splat(DType::F32, {batch, time, Dim(heads->q_heads * heads->value)}, 0);
  Value steps = node.dim_size(node.input(0), 1), zero = node.scalar_int(DType::I64, 0);
  if (node.failed()) return;
  auto condition = [&](const Values& p) { return Values{node.compare("lt", p[0], steps)}; };
  auto body = [&](const Values& p) {
    auto at = [&](Value x) { return node.op(Opcode::Gather, {x, p[0]}, {{"axis", int64_t{1}}}); };
    Value memory = p[2], key = at(k), value = at(v);
    if (decay) memory = multiply(node, memory, node.unsqueeze(node.unary(Opcode::Exponential, at(decay)), 3));
    if (beta) {
      Value retrieved = dot(node, memory, key, {0, 1}, {0, 1}, {2}, {2});
      value = multiply(node, at(beta), node.binary(Opcode::Subtract, value, retrieved));
    }
    memory = add(node, memory, multiply(node, node.unsqueeze(key, 3), node.unsqueeze(value, 2)));
    Value query = node.reshape(
        at(q), {batch, Dim(heads->kv_heads), Dim(heads->q_heads / heads->kv_heads), Dim(heads->key)});
    Value read = times(node, dot(node, query, memory, {0, 1}, {0, 1}, {3}, {2}), heads->scale);
    Value row = node.reshape(read, {batch, Dim(1), Dim(heads->q_heads * heads->value)});
    Value written = node.op(Opcode::DynamicUpdateSlice, {p[1], row, zero, p[0], zero});
    return Values{add(node, p[0], node.scalar_int(DType::I64, 1)), written, memory};
  };
  if (time != Dim(0)) {
    Instruction* loop = node.while_loop({zero, outputs, state}, condition, body);
    if (!loop) return;
    outputs = loop->result(1);
    state = loop->result(2);
  }
  node.set_output(0, node.convert(outputs, node.input(0).dtype()));
  node.set_output(1, node.convert(state, (node.has_input(3) ? node.input(3) : node.input(0)).dtype()));
}

// --- Causal convolution with a state: the last inputs of the previous call stand in front, where other
// convolutions pad with zeros.

void import_causal_conv_with_state(NodeContext& node) {
  if (!node.check_rank(0, 3) || !node.check_rank(1, 3)) return;
  Value x = node.input(0);
  auto weight = node.static_dims(1);
  auto channels = node.static_dim(0, 1);
  if (!weight || !channels) return;
  int64_t taps = (*weight)[2];
  if (!node.check_dims(1, {*channels, 1, taps}) || !node.check(taps > 0, "the filter is empty")) return;
  std::string activation = node.choice_attribute("activation", "none", {"none", "silu", "swish"});
  std::vector<Dim> state{x.type().dims[0], Dim(*channels), Dim(taps - 1)};
  Value past = node.has_input(3) ? input_with_extents(node, 3, state) : node.splat(x.dtype(), state, 0);
  Value padded = taps == 1 ? x : node.concatenate({past, x}, 2);
  Window window;
  window.dims.resize(1);
  window.dims[0].size = taps;
  DType work = x.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Value y = node.op(Opcode::Convolution, {padded, node.input(1)},
                    {{"window", window}, {"groups", *channels}, {"result", work}});
  if (node.has_input(2) && node.check_dims(2, {*channels}))
    y = add(node, y, node.unsqueeze(node.convert(node.input(2), work), 1));
  if (activation != "none" && y) {
    GraphBuilder builder = node.builder();
    y = make_silu(builder, y);
  }
  node.set_output(0, node.convert(y, x.dtype()));
  Dim length = x.type().dims[2];
  node.set_output(1, node.slice_symbolic(padded, 2, length.extent, taps - 1));
}

} // namespace firn::onnx
