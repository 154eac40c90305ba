// Columns of fewer bits than the factors that they stand for, such as integers in blocks with scales: each
// group of them becomes floats, or bytes, once, in scratch that stays in a cache while all rows pass,
//
//   widened[product of the reduction][register][lane]
//
// so that tiles multiply as if the weights lay so, and only their few bits come from memory.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

class KernelMaker;

// The scratch that holds one group of widened columns.
class WidenedColumns {
public:
  // `shape`: the contraction of widened columns (of a dot DotGeometry::widened()). The kernel's last
  // parameter becomes the scratch.
  WidenedColumns(KernelMaker& maker, const plan::ContractionShape& shape, const plan::Tiling& tiling);

  // The contraction `tiled` with factors from the scratch, and with code that widens a group of the columns
  // of `narrow`, the same contraction of these, before the group's tiles.
  ContractionSpec over(ContractionSpec tiled, const ContractionSpec& narrow) const;

private:
  bool looks_up_words_;
  int lanes_;                // columns of a vector
  kernel::MachineType type_; // a vector of the widened elements that a product takes
  int scratch_;
};

} // namespace firn::lower
