// Sums over all positions of an image, per channel, as means over maps are made of: read by the pass that
// joins them with the convolution before and by the emitter of the two.
#pragma once

#include "compiler/graph/module.h"

namespace firn {

// The reduce of `reduction`, itself one or a fusion of one with elementwise ops behind it, if it adds `value`
// [images, channels, positions...], f32 of static shape, over the positions. Null otherwise, or if anything
// else of the fusion reads the value.
const Instruction* find_position_sum(const Instruction& reduction, Value value);

} // namespace firn
