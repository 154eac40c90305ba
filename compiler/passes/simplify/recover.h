// The patterns of recover-composites. Each looks at the last instruction of a decomposition and returns the
// composite's result, or no value.
#pragma once

#include "compiler/passes/match.h"

#include <optional>
#include <vector>

namespace firn {

Value recover_logistic(Instruction& divide, GraphBuilder& builder);
Value recover_activation(Instruction& multiply,
                         GraphBuilder& builder); // silu, hard_swish, gelu; also ends in divide
Value recover_softmax(Instruction& divide, GraphBuilder& builder);
Value recover_log_softmax(Instruction& subtract, GraphBuilder& builder);
Value recover_cross_entropy(Instruction& loss, GraphBuilder& builder);  // softmax_cross_entropy
Value recover_picked_class(Instruction& gather, GraphBuilder& builder); // likewise, from gather_elements
Value recover_norm(Instruction& instruction,
                   GraphBuilder& builder); // layer_norm, rms_norm without scale and bias
Value absorb_norm_affine(Instruction& instruction,
                         GraphBuilder& builder); // scale and bias into a norm recovered before

// `value` is a broadcast, to `x`'s dims, of a tensor that a reduction of x-shaped values over `dims` gives.
// Returns that tensor (the dims may be missing or have extent 1).
struct ReducedBroadcast {
  Value source;
  std::vector<int64_t> dims;
};
// The dims of `x` along which `value` is a broadcast of fewer elements: all of extent above 1 that the
// broadcast repeats.
std::optional<ReducedBroadcast> reduced_broadcast(Value value);
// `value` as reduce(operand) over `dims`, extents of 1 aside: the operand.
Value reduction_operand(Value value, Opcode reducer, const std::vector<int64_t>& dims);
// `value` as the mean of an operand over `dims`: the operand.
Value mean_operand(Value value, const std::vector<int64_t>& dims);
// Reshapes that only add or drop extents of 1 looked through.
Value strip_unit_reshapes(Value value);
// Splat equal to `wanted` within a relative 2e-5: constants that exporters round to a few digits.
bool is_about(Value value, double wanted);
// The other operand of a commutative op one of whose operands satisfies is_about(wanted); no value otherwise.
Value other_than(const Instruction& instruction, double wanted);

} // namespace firn
