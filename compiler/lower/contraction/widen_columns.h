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

// Makes `tiled` the contraction of widened columns (of a dot DotGeometry::widened()), with code that widens a
// group of the columns of `narrow` and loads factors from there. The kernel's last parameter becomes the
// scratch.
void widen_columns(KernelMaker& maker, ContractionSpec& tiled, ContractionSpec narrow,
                   const plan::Tiling& tiling);

} // namespace firn::lower
