// The evaluator: a reference interpreter of the graph IR. Slow and plain on purpose; it shares nothing with the levels
// below. Transcendentals are libm in f64, rounded once to the value's dtype; sums of floats run in f64 for dots,
// convolutions and reductions of f32 and narrower types.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// Runs @main (after @prepare, if there is one) on `inputs`, in the order of its parameters. The inputs must have the
// parameters' dtypes and, after binding symbols, their dims. Errors: a missing capability names the op
// (Fault::Unsupported); data that an op refuses (index out of range) names the instruction (Fault::Model).
Expected<std::vector<LiteralRef>> evaluate(const Module& module, const std::vector<LiteralRef>& inputs);

// Evaluates one instruction on constant operands: how constants are folded. Nothing if the op has side conditions that
// the operands break, is random, or is not supported.
std::optional<std::vector<LiteralRef>> evaluate_instruction(const Instruction& instruction,
                                                            const std::vector<LiteralRef>& operands);

} // namespace firn
