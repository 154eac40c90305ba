// Registers that hold several steps of a reduction side by side: with k_interleave d, lanes / d columns, each
// of them in d neighbouring lanes, one per step. The scalar operands of d neighbouring steps, repeated over
// the register by the load, multiply into them, and the d sums of a column are added at the end:
//
//   w(f0,k0) w(f0,k1) w(f1,k0) w(f1,k1) ...  *  x(k0) x(k1) x(k0) x(k1) ...
//
// A vector of columns takes d such registers, and a part of a vector fewer: 24 columns take three registers
// of k_interleave 2 for two steps, rather than four of one step.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

// What lane `lane` of register `number` of a column group of `registers` holds. Columns are spread over the
// registers of a vector so that additions within quarters of 128 bits bring them into order.
struct StepLane {
  int64_t column; // of the group
  int64_t step;   // within [0, k_interleave)
};
StepLane step_lane(int lanes, int k_interleave, int registers, int number, int lane);

// The `k_interleave` lanes of `steps` over and over, in `lanes` lanes; a scalar in all of them.
kernel::Register repeat_steps(kernel::Builder& builder, kernel::Register steps, int lanes);
// The sums of one vector of columns, which `registers`, at most `k_interleave`, hold; zeros in lanes beyond
// them.
kernel::Register add_steps(kernel::Builder& builder, std::vector<kernel::Register> registers,
                           int k_interleave);

} // namespace firn::lower
