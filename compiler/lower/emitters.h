// The emitters: each lowers one planned instruction to kernels, as the plan says.
#pragma once

#include "compiler/lower/lowering_context.h"
#include "compiler/plan/roots.h"

#include <functional>

namespace firn::lower {

void emit_planned(LoweringContext&, const Instruction&, const plan::ContractionPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::WinogradPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::DepthwisePlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::DepthwiseChainPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::PoolingPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::RowPoolingPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::AttentionPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::RecurrentPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::RelayoutPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::ElementsPlan&); // ops and fusions
void emit_planned(LoweringContext&, const Instruction&, const plan::RowsPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::ResamplePlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::ScanPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::TopKPlan&);
void emit_planned(LoweringContext&, const Instruction&, const plan::TreesPlan&);
void emit_dot(LoweringContext& context, const Instruction& instruction, const plan::KernelRoot& root,
              const plan::ContractionPlan& plan);
void emit_planar_convolution(LoweringContext& context, const Instruction& instruction,
                             const plan::KernelRoot& root, const plan::ContractionPlan& plan);

// Emitters of instructions with plain plans.
void emit_concatenate(LoweringContext& context, const Instruction& instruction);
void emit_update_slice(LoweringContext& context, const Instruction& instruction);
void emit_scatter_elements(LoweringContext& context, const Instruction& instruction);
void emit_scatter_nd(LoweringContext& context, const Instruction& instruction);
void emit_select_and_scatter(LoweringContext& context, const Instruction& instruction);
void emit_non_zero(LoweringContext& context, const Instruction& instruction);
void emit_sort(LoweringContext& context, const Instruction& instruction);
void emit_pack_constant(LoweringContext& context, const Instruction& instruction);
void emit_pack_elements(LoweringContext& context, const Instruction& convert);
void emit_text(LoweringContext& context, const Instruction& instruction);
void emit_custom(LoweringContext& context, const Instruction& custom);
Result emit_fused_spatial_sum(LoweringContext& context, const Instruction& fusion);

// Gives the elements of a constant of strings their addresses.
void emit_text_constant(LoweringContext& context, const Instruction& constant, BufferSlice place);

// Emits a composite of reductions along rows of its last dim as code in the kernel of another instruction,
// for the rows [first, end). Call it before any scratch is made.
std::function<void(const IntExpr& first, const IntExpr& end)>
bind_rows(KernelMaker& maker, const Instruction& composite, const plan::RowsPlan& plan);

Result emit_if(LoweringContext& context, const Instruction& instruction);
Result emit_while(LoweringContext& context, const Instruction& instruction);

// Copies a value's elements to another place of the same type: for results that are inputs, and loop-carried
// values.
void emit_copy(LoweringContext& context, Value from, BufferSlice to, const std::string& location);
void emit_copy(LoweringContext& context, BufferSlice from, BufferSlice to, const Type& type,
               const std::string& location);

} // namespace firn::lower
