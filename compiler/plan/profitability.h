// When rewriting a graph is worth it: thresholds of passes that change the form of a graph before there are
// plans whose cycles could be compared, each with its reason. Where both forms have plans, passes compare
// these instead (choose_matrices.h, choose_winograd.h, chain_strips.h).
#pragma once

#include "compiler/graph/module.h"

#include <cstddef>
#include <cstdint>

namespace firn::plan {

// The most members of a fusion: beyond this, registers spill and code grows without gain.
inline constexpr size_t kMaxFusionMembers = 48;
// The most members of an epilogue: a contraction holds most registers itself.
inline constexpr size_t kMaxEpilogueMembers = 40;
// The most updates of states in one kernel, which share the registers.
inline constexpr size_t kMaxJoinedUpdates = 64;
// The elementwise ops between a contraction and a value up to which the value keeps the contraction's dims:
// it joins the epilogue in these.
inline constexpr int kMaxOpsInDims = 12;

// Products in a sum of a dot below which it stays in f32: converting its operands takes longer than bf16
// saves.
inline constexpr int64_t kMinStepsInBf16 = 16;
// The shortest part of a sum of products of 16 bits, a multiple of kPartMultiple: adding shorter parts takes
// longer than products in pairs save.
inline constexpr int64_t kMinStepsOfPart = 64, kPartMultiple = 16;
// Channels of a group from which on a zero point of weights is multiplied by sums of the input: windows of
// fewer take as long to sum as to multiply by filters.
inline constexpr int64_t kMinSummedChannels = 4;
// Elements of a constant of less than a byte each up to which a copy in bytes is kept beside it.
inline constexpr int64_t kMaxWidenedConstant = 256;

// Whether rows of the type gain from being contiguous: they are not shorter than a vector.
bool has_long_rows(const Type& type);
// Whether loading an operand of `elements` elements costs nothing beside computing `results` elements: it
// stays in the first cache level.
bool is_load_free(int64_t elements, int64_t results);
// Whether scaling the filters of a convolution takes little beside scaling its input.
bool is_filter_scaling_profitable(const Type& input, const Type& filters);
// Whether so many products for each result take longer than interleaving the results of phases.
bool outlasts_interleaving(int64_t products);
// Whether a window is better reduced along one dim of `size` first and along the others, with `rest` elements
// and the product `strides` of strides, then: the values between are stored and loaded.
bool is_separating_profitable(int64_t size, int64_t rest, int64_t strides);
// Whether a function of bytes has so many results that its table is worth computing.
bool is_byte_table_profitable(int64_t results);
// Whether an input is better converted to blocks of `block` channels before a convolution with these filters:
// converting costs one pass over it, and the convolution reads it once for every position of the window and
// block of filters, full or not. `positions`: those of the window.
bool is_block_conversion_profitable(int64_t filters, int64_t positions, int block);

} // namespace firn::plan
