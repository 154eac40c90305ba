// Operands of a contraction's products as registers: single factors as what their sums are, or the k group of
// a lane as a word of 32 bits, the first step's factor lowest.
#pragma once

#include "compiler/lower/contraction/packed_operand.h"
#include "compiler/lower/element/element_access.h"

namespace firn::lower {

// The scalar operand of the product at the value `k` of the innermost loop.
//
// `place`: of a step of that k group in the buffer, in elements. `lie_together`: steps are neighbours, those
// of a whole k group, and of one cut short if `has_whole_tail`.
struct ScalarOperands {
  int buffer = -1;
  DType dtype = DType::F32;
  std::function<IntExpr(int step)> place;
  bool lie_together = false, has_whole_tail = false;
};
kernel::Register load_operands(kernel::Builder& builder, const plan::ContractionShape& shape,
                               const ScalarOperands& operands, const IntExpr& k);
// Lanes of a packed vector operand, which begins at an element that is a whole vector.
kernel::Register load_packed_operands(kernel::Builder& builder, const plan::MacInstruction& product,
                                      int buffer, const IntExpr& index, int lanes);
// The same of columns however they are packed, from that element on. With `widens`, pairs in four bits stay
// bytes, which are stored for others to load.
kernel::Register load_packed_columns(kernel::Builder& builder, const plan::MacInstruction& product,
                                     int buffer, const PackedOperand& packed, const IntExpr& index,
                                     bool widens);

// Step `step` of words of packed signed integers, as floats; `table` (table_of_steps), if any, has these.
kernel::Register step_of_words(kernel::Builder& builder, kernel::Register words, int step, int k_extent,
                               kernel::Register table = {});
// The floats that steps of such words may be, by their bits, in as many lanes.
kernel::Register table_of_steps(kernel::Builder& builder, int k_extent);

// Words of eight u4 hold two k groups of bytes, one in the even places, one in the odd ones. Those of a
// group.
kernel::Register group_of_words(kernel::Builder& builder, kernel::Register words, int group);

// Words of k groups as the factors that they hold; single factors as they are.
kernel::Register unpacked_operands(kernel::Builder& builder, const plan::MacInstruction& product,
                                   kernel::Register operands);
// sum + scalar * vector, both in as many lanes.
kernel::Register multiply_add(kernel::Builder& builder, const plan::MacInstruction& product,
                              kernel::Register scalar, kernel::Register vector, kernel::Register sum);

} // namespace firn::lower
