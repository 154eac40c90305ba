// Rotary position embeddings: pairs of features are rotated by angles that depend on positions.
#include "compiler/frontend/onnx/arithmetic.h"
#include "compiler/frontend/onnx/dims/dim_unification.h"
#include "compiler/frontend/onnx/ops/attention_operators.h"

namespace firn::onnx {

namespace {

// The first and second partner of each pair that is rotated together: halves, or neighbours when interleaved.
struct Pairs {
  Value first, second;
};

Pairs split_pairs(NodeContext& node, Value x, bool interleaved) {
  int last = x.rank() - 1;
  int64_t half = x.dim(last) / 2;
  if (!interleaved) return {node.slice_dim(x, last, 0, half), node.slice_dim(x, last, half, 2 * half)};
  std::vector<Dim> dims = x.type().dims;
  dims.back() = Dim(half);
  dims.emplace_back(2);
  Value pairs = node.reshape(x, dims);
  return {node.squeeze(node.slice_dim(pairs, last + 1, 0, 1), last + 1),
          node.squeeze(node.slice_dim(pairs, last + 1, 1, 2), last + 1)};
}

Value join_pairs(NodeContext& node, Value first, Value second, bool interleaved,
                 const std::vector<Dim>& dims) {
  if (!first || !second) return {};
  int last = first.rank() - 1;
  if (!interleaved) return node.concatenate({first, second}, last);
  return node.reshape(
      node.concatenate({node.unsqueeze(first, last + 1), node.unsqueeze(second, last + 1)}, last + 1), dims);
}

// The number of rotated features by the attribute rotary_embedding_dim, even and at most those of a head; 0
// means all.
std::optional<int64_t> rotated_features(NodeContext& node, int64_t head) {
  int64_t rotated = node.int_attribute("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = head;
  if (!node.check(rotated > 0 && rotated <= head && rotated % 2 == 0,
                  "attribute rotary_embedding_dim is " + std::to_string(rotated) +
                      ", wants an even number up to " + std::to_string(head)))
    return std::nullopt;
  return rotated;
}

// Input 0 as [batch, seq, heads, size], or [batch, heads, seq, size] as it is. The attribute num_heads gives
// the number of heads; without it each head has `size_of_head` features.
struct Heads {
  Value x;
  int dim = 0; // dim of the heads
  int64_t size = 0;
};

std::optional<Heads> read_heads(NodeContext& node, int64_t size_of_head = 0) {
  Value x = node.input(0);
  if (!node.check(x.rank() == 3 || x.rank() == 4,
                  node.input_label(0) + " has rank " + std::to_string(x.rank()) + ", wants 3 or 4"))
    return std::nullopt;
  bool joined = x.rank() == 3;
  int64_t count = node.int_attribute("num_heads", 0);
  if (joined && count == 0 && size_of_head > 0)
    if (auto hidden = node.static_dim(0, 2)) count = *hidden / size_of_head;
  if (joined) x = split_heads(node, x, count, node.input_label(0));
  if (!x) return std::nullopt;
  auto size = node.static_dim(x, 3, "the head");
  if (!size) return std::nullopt;
  return Heads{x, joined ? 2 : 1, *size};
}

// The angles from `input`: one per pair at each step of x. One entry may stand for the whole batch.
Value checked_angles(NodeContext& node, int input, Value angles, const Heads& heads, int64_t pairs) {
  if (!angles) return {};
  if (!node.check(angles.rank() == 3 && angles.type().dims[2] == Dim(pairs),
                  node.input_label(input) + " gives " + angles.type().to_string() + ", wants " +
                      std::to_string(pairs) + " angles"))
    return {};
  const std::vector<Dim>&dims = heads.x.type().dims, &own = angles.type().dims;
  return with_extents(node, angles,
                      {own[0] == Dim(1) ? own[0] : dims[0], dims[heads.dim == 2 ? 1 : 2], own[2]});
}

void set_rotated(NodeContext& node, const Heads& heads, Value cosines, Value sines) {
  Value y = rotate_heads(node, heads.x, heads.dim, cosines, sines, node.flag_attribute("interleaved", false));
  node.set_output(0, node.reshape(y, node.input(0).type().dims));
}

} // namespace

Value rotate_heads(NodeContext& node, Value x, int heads_dim, Value cosines, Value sines, bool interleaved) {
  if (!x || !cosines || !sines) return {};
  int64_t head = x.dim(3), rotated = 2 * cosines.dim(2);
  Value cosine = node.unsqueeze(cosines, heads_dim), sine = node.unsqueeze(sines, heads_dim);
  Value part = rotated == head ? x : node.slice_dim(x, 3, 0, rotated);
  if (!part) return {};
  Pairs pairs = split_pairs(node, part, interleaved);
  Value real = subtract(node, multiply(node, cosine, pairs.first), multiply(node, sine, pairs.second));
  Value imaginary = add(node, multiply(node, sine, pairs.first), multiply(node, cosine, pairs.second));
  Value y = join_pairs(node, real, imaginary, interleaved, part.type().dims);
  return rotated == head ? y : node.concatenate({y, node.slice_dim(x, 3, rotated, head)}, 3);
}

void import_rotary_embedding(NodeContext& node) {
  auto heads = read_heads(node);
  auto rotated = heads ? rotated_features(node, heads->size) : std::nullopt;
  if (!rotated) return;
  Value caches[2];
  for (int i = 0; i < 2; ++i) {
    caches[i] = node.input(i + 1);
    if (node.has_input(3))
      caches[i] = node.op(Opcode::Gather, {caches[i], node.input(3)}, {{"axis", int64_t{0}}});
    caches[i] = checked_angles(node, i + 1, caches[i], *heads, *rotated / 2);
  }
  set_rotated(node, *heads, caches[0], caches[1]);
}

// Input 1 holds the positions: one per row and step, or one number from which all steps count.
void import_contrib_rotary_embedding(NodeContext& node) {
  auto pairs = node.check_rank(2, 2) ? node.static_dim(2, 1) : std::nullopt;
  auto heads = pairs ? read_heads(node, 2 * *pairs) : std::nullopt;
  auto rotated = heads ? rotated_features(node, heads->size) : std::nullopt;
  if (!rotated) return;
  if (node.flag_attribute("is_packed_batching", false))
    return node.fail_unsupported("attribute is_packed_batching is set");
  Value positions = node.input(1);
  if (positions.rank() < 2) {
    Dim steps = heads->x.type().dims[heads->dim == 2 ? 1 : 2];
    positions =
        add(node, node.iota(DType::I64, {Dim(1), steps}, 1), reshape_where_equal(node, positions, {}));
  }
  Value caches[2];
  for (int i = 0; i < 2; ++i) {
    caches[i] = node.op(Opcode::Gather, {node.input(i + 2), positions}, {{"axis", int64_t{0}}});
    caches[i] = checked_angles(node, i + 2, caches[i], *heads, *rotated / 2);
  }
  set_rotated(node, *heads, caches[0], caches[1]);
}

} // namespace firn::onnx
