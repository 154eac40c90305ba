// What attention operators have in common.
#pragma once

#include "compiler/frontend/onnx/import_context.h"

namespace firn::onnx {

// [batch, seq, heads * size] as [batch, seq, heads, size]; fails unless the last extent divides. `what` names
// x.
Value split_heads(NodeContext& node, Value x, int64_t heads, const std::string& what);

// lhs [batch, heads, m, n] times rhs [batch, kv_heads, ...], whose dim `contract` meets lhs's last, with
// heads a multiple of kv_heads: [batch, heads, m, free dim of rhs].
Value grouped_product(NodeContext& node, Value lhs, Value rhs, int64_t contract);

void import_causal_conv_with_state(NodeContext& node);
void import_flex_attention(NodeContext& node);
void import_linear_attention(NodeContext& node);

} // namespace firn::onnx
