// Composites that mean something else in a training step than elsewhere. Importers make them if a training
// step is wanted; its functions other than @step have their bodies in their place.
//
//   running_norm  x [N,C,...], scale, bias, mean, variance [C] {epsilon, momentum}: batch norm by running
//                 statistics. A step may normalise by those of the batch, and move the running ones
//   dropout       x {ratio}: x, and perhaps a second result, ones. A step drops elements with the probability
//                 `ratio` and scales the others by 1 / (1 - ratio)
#pragma once

#include "compiler/graph/builder.h"

namespace firn::training {

inline constexpr const char *kRunningNorm = "running_norm", *kDropout = "dropout";
// Numbers of operands of a running norm.
inline constexpr int kNormScale = 1, kNormBias = 2, kNormMean = 3, kNormVariance = 4;

// All operands have x's dtype, f32 or wider.
Value make_running_norm(GraphBuilder& builder, const std::vector<Value>& operands, double epsilon,
                        double momentum);
// With `mask`, a dtype, there is a second result of x's dims.
Instruction* make_dropout(GraphBuilder& builder, Value x, double ratio, std::optional<DType> mask);

bool is_running_norm(const Instruction& instruction);
bool is_dropout(const Instruction& instruction);

// A vector [C] as [1,C,1,...] of `rank` dims.
Value per_channel(GraphBuilder& builder, Value vector, int rank);

// Puts the bodies of these composites in their place, in the regions beneath too.
void inline_training_forms(Region& region);

} // namespace firn::training
