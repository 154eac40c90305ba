// Code that all emitters of contractions share: packing the constant operand, and turning the rest of a
// fusion into the epilogue.
#pragma once

#include "compiler/lower/contraction/contraction_ops.h"

namespace firn::lower {

// The packed operand: a constant, or scratch that a kernel of its own fills. If the batch varies, it has as
// many parts as `selected`.
BufferSlice pack_operand(LoweringContext& context, const Instruction& instruction,
                         const PackedOperand& packed, Value operand,
                         const std::optional<IntExpr>& selected = std::nullopt);

// The product's name in reports: " dot4 u8 i8 i32"; nothing for f32.
std::string product_name(const plan::MacInstruction& product);

// The place where a bias per channel is added if it comes first in the epilogue: there, or in sums that start
// from it (ContractionBinding::initial), which saves an instruction per vector of results.
enum class Bias : uint8_t { InEpilogue, InAccumulators };
template <class Plan> Bias bias_of(const Plan& plan) {
  return plan.bias_in_accumulators ? Bias::InAccumulators : Bias::InEpilogue;
}
// Binds the epilogue of a fusion to its operands; `binding` knows the parameters of the contraction's
// operands.
void bind_epilogue(KernelMaker& maker, const Instruction& instruction, const plan::KernelRoot& root,
                   ContractionBinding& binding, Bias bias = Bias::InEpilogue);
// Binds the epilogue and the result.
void bind_result(KernelMaker& maker, const Instruction& instruction, const plan::KernelRoot& root,
                 ContractionBinding& binding, Bias bias = Bias::InEpilogue);

} // namespace firn::lower
