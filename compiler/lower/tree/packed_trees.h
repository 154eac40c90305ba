// Walks down decision trees that are packed into few bytes.
#pragma once

#include "compiler/lower/lowering_context.h"
#include "compiler/plan/trees/plan.h"

namespace firn::lower {

// Emits the kernel of a composite `tree_ensemble` whose plan is packed.
void emit_packed_trees(LoweringContext& context, const Instruction& composite, const plan::TreesPlan& plan);

} // namespace firn::lower
