// Columns of fewer bits than the floats that they stand for, such as integers in blocks with scales: each
// group of them becomes floats once, in scratch that stays in a cache while all rows pass,
//
//   widened[step of the reduction][register][lane]
//
// so that tiles multiply as if the weights were floats, and only their few bytes come from memory.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

class KernelMaker;

// The dot of widened columns (DotGeometry::widened()) in `tiled`, with code that widens a group of those that
// `narrow` multiplies, and factors from there. The kernel's last parameter becomes the scratch.
void widen_columns(KernelMaker& maker, ContractionSpec& tiled, ContractionSpec narrow,
                   const plan::Tiling& tiling);

} // namespace firn::lower
