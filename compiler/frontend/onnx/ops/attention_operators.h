// Steps that attention operators share.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// [batch, seq, heads * size] as [batch, seq, heads, size]; fails unless the last extent divides. `what` names
// x.
Value split_heads(NodeContext& node, Value x, int64_t heads, const std::string& what);

// x [batch, heads, seq, size]; a run in which its batch or steps differ from these ends.
Value with_batch_and_steps(NodeContext& node, Value x, const Dim& batch, const Dim& steps);
// x [batch, heads, seq, size] behind earlier steps, which input `past` of the same batch holds.
Value behind_past(NodeContext& node, int past, Value x);

// lhs [batch, heads, m, n] times rhs [batch, kv_heads, ...], summed over lhs's last dim and rhs's dim
// `contract`. `heads` is a multiple of kv_heads. Result [batch, heads, m, free dim of rhs].
Value grouped_product(NodeContext& node, Value lhs, Value rhs, int64_t contract);

// x [batch, seq, heads, size] or [batch, heads, seq, size] with its pairs of features rotated by angles whose
// cosines and sines are [batch or 1, seq, pairs]; features beyond the pairs stay.
Value rotate_heads(NodeContext& node, Value x, int heads_dim, Value cosines, Value sines, bool interleaved);

void import_causal_conv_with_state(NodeContext& node);
void import_flex_attention(NodeContext& node);
void import_contrib_attention(NodeContext& node);
void import_contrib_rotary_embedding(NodeContext& node);
void import_group_query_attention(NodeContext& node);
void import_linear_attention(NodeContext& node);
void import_quantized_attention(NodeContext& node);
void import_multi_head_attention(NodeContext& node);
void import_rotary_embedding(NodeContext& node);

} // namespace firn::onnx
