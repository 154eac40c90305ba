// What passes that choose between forms of the graph ask before there are plans: which form kernels compute
// well.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/target_info.h"

#include <optional>

namespace firn::plan {

// Whether the result of a convolution should lie in blocks of `block` channels.
bool prefers_channel_blocks(const Instruction& convolution, int block);
// Whether its input has channels enough to be read in blocks: a block of few is mostly empty, but the k group
// of a product is one load of it.
bool has_channels_for_blocks(const Instruction& convolution, const TargetInfo& target);
// Whether its groups lie within blocks: depthwise, or side by side with as many results as operands.
bool has_groups_within_blocks(const Instruction& convolution, int block);
// Whether groups of a convolution of 1x1 windows are better a batch of dots: they neither fill blocks nor lie
// within one, and positions fill vectors.
bool groups_want_dots(const Instruction& convolution, int block);
// Whether neighbouring results of a line read neighbouring elements and fill vectors of `lanes`.
bool lines_fill_vectors(const Instruction& convolution, int lanes);
// Whether all phases of a transposed convolution are one kernel that stores each where it belongs: a phase's
// filters fill blocks, and are known at compile time.
bool has_polyphase_kernel(const Instruction& convolution, int block);
// Whether so many filters over strided single elements make a slice of the input before them cheap.
bool is_slicing_profitable(int64_t filters, const TargetInfo& target);
// A reduction in two steps: the first leaves this dim of the operand, or so many equal parts of it.
struct ReductionSplit {
  int64_t dim, parts;
};
// Of a reduction to so few results that threads could not share it, though they would gain, and of a sum
// whose first step a convolution takes in registers; nothing: it stays whole.
std::optional<ReductionSplit> split_of_reduction(const Instruction& reduce, const TargetInfo& target,
                                                 int threads);
// Whether a map that was just written is read from beyond the second cache level, beside what else passes.
bool spills_last_level(const Type& map, const TargetInfo& target);

} // namespace firn::plan
