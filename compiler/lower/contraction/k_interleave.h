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

// The columns in the lanes of a vector's `parts` registers. They are spread over the registers so that
// additions within quarters of 128 bits, whose lanes are exchanged cheaply, bring them into order. Lane
// `step` of a column's lanes has step `step` of the reduction.
struct InterleavedLanes {
  static constexpr int kQuarter = 4; // lanes
  InterleavedLanes(int lanes, int k_interleave, int parts)
      : quarters(lanes / kQuarter), columns_per_quarter(kQuarter / k_interleave),
        columns_between_quarters(parts * columns_per_quarter) {}
  int quarters;
  int columns_per_quarter;      // columns of one register; the next register has those behind them
  int columns_between_quarters; // columns of the vector
};

// The `k_interleave` lanes of `steps` over and over, in `lanes` lanes; a scalar in all of them.
kernel::Register repeat_steps(kernel::Builder& builder, kernel::Register k_extent, int lanes);
// The sums of one vector of columns, which `registers`, at most `k_interleave`, hold; zeros in lanes beyond
// them.
kernel::Register add_steps(kernel::Builder& builder, std::vector<kernel::Register> registers,
                           int k_interleave);

} // namespace firn::lower
