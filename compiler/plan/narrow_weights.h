// Products that wait for their weights, and gain by weights of fewer bytes.
#pragma once

#include "compiler/graph/module.h"
#include "compiler/target/machine.h"

namespace firn::plan {

// Rows that fit one tile, which widens weights as it reads them and waits for nothing else.
inline constexpr int64_t kFewRows = 4;

// Whether integers in blocks, [n, blocks, block] of u4 or u8, are multiplied by bytes faster than by floats,
// and i32 holds the sums of a block. With few rows, floats would widen integers for every product; with more
// rows, once for all.
bool is_profitable_in_byte_rows(const Type& integers, bool has_few_rows, const Machine& target);

// Whether byte filters are widened in registers for inputs of f32, which takes little time beside the
// products of many channels. Winograd's algorithm, which transforms filters of f32, saves more unless size
// counts.
bool is_profitable_with_narrow_filters(const Instruction& convolution, bool optimize_size);

// Whether a dot of few rows waits for its second operand, weights without batches, rather than for its
// products.
bool is_memory_bound(const Instruction& dot, const Machine& target, int64_t model_weight_bytes);
// Whether a product of `rows` rows and these weights waits for the weights.
bool is_memory_bound(int64_t rows, const Type& weights, const Machine& target, int64_t model_weight_bytes);

} // namespace firn::plan
