// Products with weights that are integers in blocks along the reduction, each block of a column with a scale:
//
//   y[..., n] = sum over b of scale[n, b] * (sum over i of x[..., b * block + i] * integers[n, b, i])
//
// With rows of bytes, x in the same blocks, each block of a row has a scale too, row_scale[..., b], and
// integers are stored as CPUs multiply them by bytes, from 0 on: larger than those above by 8 of u4, 128 of
// u8. What that adds to a block is the same for all columns, and its opposite is given beside the scale, so
// that no kernel sums rows and sums of blocks are exact:
//
//   row_start[..., b] = -distance * (sum over i of x[..., b * block + i])
//
// A word holds eight u4: the even ones are the first four steps, the odd ones the last four, so that each
// half is the steps of one product.
#pragma once

#include "compiler/graph/builder.h"

namespace firn {

// The composite `blocked_dot`: x [..., blocks * block] in f32, integers [n, blocks, block], scales of a float
// dtype [n, blocks]; the result is f32 [..., n]. Its body multiplies by the weights that these stand for.
// With `row_scales` and `row_starts`, f32 and i32 [..., blocks], x is i8; the body has no need of the latter.
// Rows may vary.
Value make_blocked_dot(GraphBuilder& builder, Value x, Value integers, Value scales, Value row_scales = {},
                       Value row_starts = {});

// The weights that integers and scales stand for, [n, blocks * block] of a float dtype.
Value blocked_weights(GraphBuilder& builder, Value integers, Value scales, DType dtype);

// Whether the instruction is such a composite, of operands and a result of any dtypes whose shapes fit.
bool has_blocked_dot_shapes(const Instruction& instruction);
// Whether the instruction is such a composite, of operands that fit each other and plain layouts.
bool is_blocked_dot(const Instruction& instruction);
// Whether a blocked dot's rows are bytes.
inline bool has_byte_rows(const Instruction& blocked_dot) {
  return blocked_dot.num_operands() == 5;
}
// How much larger stored integers are than the numbers that they stand for.
inline int64_t storage_offset(DType integers) {
  return integers == DType::U4 ? 8 : integers == DType::U8 ? 128 : 0;
}
// The place at which a step of four bits is stored; steps are permuted within words of eight.
inline int64_t place_of_step(int64_t step) {
  return step / 8 * 8 + step % 4 * 2 + step % 8 / 4;
}

// How many steps of a block's reduction a word of packed integers holds: 8 of four bits. Wider integers are
// not packed: 1.
int64_t steps_per_word(DType integers);

// Whether blocks of `block` integers are whole words.
inline bool has_whole_words(int64_t block, DType integers) {
  return block > 0 && block % steps_per_word(integers) == 0;
}

} // namespace firn
