// Operands of a contraction's products as registers: single factors in the type of their sums, or a lane's k
// group as a word of 32 bits, the first step's factor lowest.
//
// Integers of four bits become floats by a look-up in a register that holds all 16 values.
#pragma once

#include "compiler/lower/contraction/packed_operand.h"
#include "compiler/lower/element/element_access.h"

#include <array>

namespace firn::lower {

// Loads the scalar operand of the product at the value `k` of the innermost loop.
//
// `place`: the place of a step of that k group in the buffer, in elements. `lie_together`: the steps of a
// whole k group are neighbours, and with `has_whole_tail` also those of one cut short.
struct ScalarOperands {
  int buffer = -1;
  DType dtype = DType::F32;
  std::function<IntExpr(int step)> place;
  bool lie_together = false, has_whole_tail = false;
};
kernel::Register load_operands(kernel::Builder& builder, const plan::ContractionShape& shape,
                               const ScalarOperands& operands, const IntExpr& k);
// Loads lanes of a packed vector operand from an element that is the first of a whole vector.
kernel::Register load_packed_operands(kernel::Builder& builder, const plan::MacInstruction& product,
                                      int buffer, const IntExpr& index, int lanes);
// Loads lanes of columns that may be packed in any form, from that element on. With `widens`, pairs in four
// bits stay bytes, which are stored for other tiles to load.
kernel::Register load_packed_columns(kernel::Builder& builder, const plan::MacInstruction& product,
                                     int buffer, const PackedOperand& packed, const IntExpr& index,
                                     bool widens);

// Step `step` of words of packed signed integers, as floats, looked up in `table` (table_of_steps) if there
// is one.
kernel::Register step_of_words(kernel::Builder& builder, kernel::Register words, int step, int k_extent,
                               kernel::Register table = {});
// The floats for all values of a step of such words, indexed by its bits, in `lanes` lanes.
kernel::Register table_of_steps(kernel::Builder& builder, int k_extent);

// Half of the bytes of words of eight u4: a word holds two k groups, one in the even places and one in the
// odd ones.
kernel::Register group_of_words(kernel::Builder& builder, kernel::Register words, int group);

// Words of k groups as the factors that they hold; single factors unchanged.
kernel::Register unpacked_operands(kernel::Builder& builder, const plan::MacInstruction& product,
                                   kernel::Register operands);
// The even and the odd ones of four bytes as i16x2.
std::array<kernel::Register, 2> widened_pairs(kernel::Builder& builder, DType dtype, kernel::Register bytes);
// Adds scalar * vector to sum; all have the same lanes.
kernel::Register multiply_add(kernel::Builder& builder, const plan::MacInstruction& product,
                              kernel::Register scalar, kernel::Register vector, kernel::Register sum);

} // namespace firn::lower
