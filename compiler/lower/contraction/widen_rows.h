// Rows of bytes as the pairs of i16 that products on CPUs without vectors take: the words of a tile of rows
// are widened once, into scratch, and all columns read them from there,
//
//   pairs[product of the reduction][row of the tile][even, odd]
//
// so that only the columns' words are widened where they are multiplied.
#pragma once

#include "compiler/lower/contraction/contraction.h"

namespace firn::lower {

class KernelMaker;

class WidenedRows {
public:
  // The kernel's last parameter becomes the scratch.
  WidenedRows(KernelMaker& maker, const plan::ContractionShape& shape, const plan::Tiling& tiling);

  // The contraction with rows from the scratch, and with code that fills it before a tile's columns.
  ContractionSpec over(ContractionSpec spec) const;

private:
  int rows_; // a tile has at most so many
  int scratch_;
};

} // namespace firn::lower
