// The emitters: each lowers one planned instruction to kernels, as the plan says.
#pragma once

#include "compiler/lower/lowering_context.h"
#include "compiler/plan/contraction/plan.h"
#include "compiler/plan/roots.h"
#include "compiler/plan/rows/plan.h"

#include <functional>

namespace firn::lower {

// One emitter for each row of algorithms.def.
#define FIRN_ALGORITHM(Name, word, Plan, machines, precedence, help)                                         \
  void emit_##word(LoweringContext&, const Instruction&, const plan::Plan&);
#include "compiler/plan/algorithms.def"
#undef FIRN_ALGORITHM

void emit_dot(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
              const plan::ContractionPlan& plan);
// Gives the elements of a constant of strings their addresses.
void emit_text_constant(LoweringContext& context, const Instruction& constant, BufferSlice place);

// Emits a composite of reductions along rows of its last dim as code in the kernel of another instruction,
// for the rows [first, end). Call it before any scratch is made.
std::function<void(const IntExpr& first, const IntExpr& end)>
bind_rows(KernelMaker& maker, const Instruction& composite, const plan::RowsPlan& plan);

void emit_if(LoweringContext& context, const Instruction& instruction);
void emit_while(LoweringContext& context, const Instruction& instruction);

// Copies a value's elements to another place of the same type: for results that are inputs, and loop-carried
// values.
void emit_copy(LoweringContext& context, Value from, BufferSlice to, const std::string& location);
void emit_copy(LoweringContext& context, BufferSlice from, BufferSlice to, const Type& type,
               const std::string& location);

} // namespace firn::lower
