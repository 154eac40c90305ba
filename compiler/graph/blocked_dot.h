// Products with weights that are integers in blocks along the reduction, each block of a column with a scale:
//
//   y[..., n] = sum over b of scale[n, b] * (sum over i of x[..., b * block + i] * integers[n, b, i])
//
// With rows of bytes, x in the same blocks, each block of a row has a scale too: row_scale[..., b].
#pragma once

#include "compiler/graph/builder.h"

namespace firn {

// The composite `blocked_dot`: x [..., blocks * block] in f32, integers [n, blocks, block], scales of a float
// dtype [n, blocks]; the result is f32 [..., n]. Its body multiplies by the weights that these stand for.
// With `row_scales`, f32 [..., blocks], x is i8.
Value make_blocked_dot(GraphBuilder& builder, Value x, Value integers, Value scales, Value row_scales = {});

// Whether the instruction is such a composite, of operands that fit each other and plain layouts.
bool is_blocked_dot(const Instruction& instruction);
// Whether a blocked dot's rows are bytes.
inline bool has_byte_rows(const Instruction& blocked_dot) {
  return blocked_dot.num_operands() == 4;
}

// How many steps of a block's reduction a word of packed integers holds: those of i4. Others are elements of
// their own.
int64_t steps_per_word(DType integers);

// Whether blocks of so many such integers are whole words.
inline bool has_whole_words(int64_t block, DType integers) {
  return block > 0 && block % steps_per_word(integers) == 0;
}

} // namespace firn
