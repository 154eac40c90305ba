// The emitters: each lowers one instruction to kernels. Where the instruction has a plan they follow it; the
// others, in emitter_table.cpp, say whether they can.
#pragma once

#include "compiler/lower/lowering_context.h"

#include <functional>

namespace firn::lower {

// True: done. False: this emitter declines, the next of the same row is asked. Errors name what was found.
using Emitter = Expected<bool> (*)(LoweringContext& context, const Instruction& instruction);

// The emitters of an instruction, best first; none if it cannot be lowered.
std::vector<Emitter> find_emitters(const Instruction& instruction);

Expected<bool> emit_elementwise(LoweringContext& context, const Instruction& instruction); // ops and fusions
Expected<bool> emit_relayout(LoweringContext& context, const Instruction& instruction); // copies, transposes
Expected<bool> emit_movement(LoweringContext& context, const Instruction& fusion);      // read by strides
Expected<bool> emit_attention(LoweringContext& context, const Instruction& fusion);     // fuse-attention's
Expected<bool> emit_plane_convolution(LoweringContext& context,
                                      const Instruction& instruction);                // to few channels
Expected<bool> emit_strips(LoweringContext& context, const Instruction& fusion);      // form-strips'
Expected<bool> emit_side_sums(LoweringContext& context, const Instruction& fusion);   // form-side-sums'
Expected<bool> emit_resample(LoweringContext& context, const Instruction& composite); // if read_resample
Expected<bool> emit_concatenate(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_update_slice(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_scatter_elements(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_scatter_nd(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_arg_reduce(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_cumulative(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_sort(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_top_k(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_rows(LoweringContext& context, const Instruction& instruction); // softmax, norms
// Whether the body of a composite has the form that emit_rows covers.
bool has_row_form(const Instruction& composite);
// The same, with rows along the last dim.
bool has_rows_of_last_dim(const Instruction& composite);
// Such a composite as code in the kernel of another instruction, for the rows [first, end). Before any
// scratch.
std::function<void(const IntExpr& first, const IntExpr& end)> bind_rows(KernelMaker& maker,
                                                                        const Instruction& composite);
Expected<bool> emit_recurrence(LoweringContext& context, const Instruction& instruction); // rnn, gru, lstm
bool has_recurrent_form(const Instruction& composite); // that emit_recurrence covers
Expected<bool> emit_if(LoweringContext& context, const Instruction& instruction);
Expected<bool> emit_while(LoweringContext& context, const Instruction& instruction);

// Emitters that follow a plan.
void emit_depthwise(LoweringContext& context, const Instruction& instruction,
                    const plan::DepthwisePlan& plan);
void emit_pooling(LoweringContext& context, const Instruction& instruction, const plan::PoolingPlan& plan);

// Copies a value's elements to another place of the same type: results that are inputs, loop-carried values.
void emit_copy(LoweringContext& context, Value from, Place to, const std::string& location);
void emit_copy(LoweringContext& context, Place from, Place to, const Type& type, const std::string& location);

} // namespace firn::lower
