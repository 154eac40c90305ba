// What every emitter of a contraction shares: finding the dot or convolution of an instruction, packing its
// constant operand, and the epilogue that the rest of a fusion becomes.
#pragma once

#include "compiler/lower/contraction_ops.h"
#include "compiler/plan/roots.h"

namespace firn::lower {

// The contraction of an instruction, and where its operands come from outside a fusion; no operands where a
// kernel reads something else in their place.
struct ContractionRoot {
  const Instruction* contraction = nullptr;
  Value operands[2];
  std::shared_ptr<const PhaseConvolution> phases =
      nullptr; // what is computed in place of a transposed convolution

  const Instruction& computed() const { return phases ? phases->convolution() : *contraction; }
  // Has a transposed convolution computed by its phases, if these fill vectors of `lanes` filters.
  void compute_phases(int lanes);
};
// Nothing if the instruction is no dot, convolution, or fusion of one with code per element behind it.
// Operands that are constants outside of fusions around the instruction are those constants.
std::optional<ContractionRoot> find_contraction_root(const LoweringContext& context,
                                                     const Instruction& instruction);

// What is known of the binding of a contraction's code before its kernel.
BindingRef make_binding(const LoweringContext& context, const Instruction& instruction,
                        const ContractionRoot& root);
// What the schedule database has for a contraction whose fusion has that result; null if nothing.
const plan::Schedule* find_schedule(const LoweringContext& context, const Instruction& contraction,
                                    const Type& result);
// What --explain says of the contraction of `instruction` when tiles compute it directly.
plan::Explanation explain_direct(const LoweringContext& context, const Instruction& instruction,
                                 const Instruction& contraction, const plan::Tiling& tiling);

// Whether the value is known at compile time, bytes and all.
bool is_packable_constant(Value value);
// The packed operand: a constant, or scratch that a kernel of its own fills.
Place pack_operand(LoweringContext& context, const Instruction& instruction, const PackedOperand& packed,
                   Value operand);

// Where a bias per channel is added, if it comes first in the epilogue: there, or by sums that start from it
// (ContractionBinding::initial), which saves an instruction per vector of results.
enum class Bias : uint8_t { InEpilogue, InSums };
// Which is better for register tiles: sums that do not start from zeros take registers before their first
// step, and in a short epilogue the addition costs nothing, as the stores set its pace.
Bias bias_of_tiles(const Instruction& instruction);
// Binds the epilogue of a fusion with its operands; `binding` knows the parameters of the contraction's.
void bind_epilogue(KernelMaker& maker, const Instruction& instruction, const ContractionRoot& root,
                   ContractionBinding& binding, Bias bias = Bias::InEpilogue);
// The same, and binds the result.
void bind_result(KernelMaker& maker, const Instruction& instruction, const ContractionRoot& root,
                 ContractionBinding& binding, Bias bias = Bias::InEpilogue);

} // namespace firn::lower
