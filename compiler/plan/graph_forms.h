// Questions of passes that choose between forms of the graph before there are plans: which form kernels
// compute well on a machine.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/machine.h"

#include <optional>

namespace firn::plan {

// Whether kernels of floats have vectors.
bool has_vectors(const Machine& target);
// Whether memory is dear, as it is on microcontrollers: there is no second cache level, and no vector or no
// cache either.
bool saves_memory(const Machine& target);
// Whether the CPU itself multiplies floats of 32 bits.
bool multiplies_floats(const Machine& target);
// Whether a product and a sum of floats are one instruction, rounded once.
bool fuses_multiply_adds(const Machine& target);
// Whether one instruction multiplies unsigned bytes by signed ones, and none unsigned bytes by each other:
// weights beside unsigned activations are to be signed.
bool needs_signed_weights(const Machine& target);
// Whether one instruction multiplies unsigned bytes by signed ones, and none signed bytes by each other:
// activations beside signed weights are to be unsigned.
bool needs_unsigned_activations(const Machine& target);
// Channels per block of the layouts that convolutions read and write.
int channel_block(const Machine& target);
// Whether maps may lie in such blocks. On a GPU, neighbouring threads read neighbouring positions.
bool has_channel_blocks(const Machine& target);
// Whether products take rows of bytes, so that all channels of a position lie side by side: a block has as
// many as there are, rounded up to whole vectors.
bool multiplies_rows_of_bytes(const Machine& target);
// Whether the result of a convolution should lie in blocks of `block` channels.
bool prefers_channel_blocks(const Instruction& convolution, int block);
// Whether the input of a convolution has enough channels to be read in blocks: a block of few is mostly
// empty, but one load reads the k group of a product.
bool has_channels_for_blocks(const Instruction& convolution, const Machine& target);
// Whether the groups of a convolution lie within blocks: it is depthwise, or has narrow groups with as many
// results as operands.
bool has_groups_within_blocks(const Instruction& convolution, int block);
// Whether the groups of a convolution with 1x1 windows are better computed as a batch of dots: they neither
// fill blocks nor lie within one, and positions fill vectors.
bool groups_want_dots(const Instruction& convolution, int block);
// Whether neighbouring results of a line read neighbouring elements and fill vectors of `lanes`.
bool lines_fill_vectors(const Instruction& convolution, int lanes);
// Whether one kernel computes all phases of a transposed convolution and stores each where it belongs: the
// filters of a phase fill blocks, and are known at compile time.
bool has_polyphase_kernel(const Instruction& convolution, int block);
// Whether `filters` is so large that slicing a convolution's input before it, for strided single elements, is
// cheap.
bool is_slicing_profitable(int64_t filters, const Machine& target);
// The spatial dim of a convolution of few channels along which positions of its window should be channels
// instead: products of several steps then have fewer zeros among them. Nothing: it stays as it is, as it does
// on machines with vectors, whose layouts have forms for few channels.
std::optional<size_t> dim_to_unfold(const Instruction& convolution, const Machine& target, bool strict);
// A reduction in two steps: the first keeps this dim of the operand, or this many equal parts of it.
struct ReductionSplit {
  int64_t dim, parts;
};
// How to split a reduction to so few results that threads could not share it, though they would gain, or a
// sum whose first step a convolution takes in registers. Nothing: it stays whole.
std::optional<ReductionSplit> split_of_reduction(const Instruction& reduce, const Machine& target,
                                                 int threads);
// Whether reading a map that was just written goes beyond the second cache level, as other data pass as well.
bool spills_last_level(const Type& map, const Machine& target);

} // namespace firn::plan
