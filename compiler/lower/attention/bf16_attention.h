// Attention whose dots multiply bf16 (plan/attention/bf16_attention.h).
#pragma once

#include "compiler/graph/attention.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

void emit_bf16_attention(LoweringContext& context, const Instruction& fusion, const Attention& attention,
                         const plan::AttentionPlan& plan);

} // namespace firn::lower
