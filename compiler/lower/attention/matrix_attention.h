// Attention by tile matrices (plan/attention_matrices.h).
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

void emit_matrix_attention(LoweringContext& context, const Instruction& fusion, const Attention& attention,
                           const plan::AttentionPlan& plan);

} // namespace firn::lower
