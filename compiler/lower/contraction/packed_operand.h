// The packed form of a contraction's vector operand: the order in which the register tiles read it, so that a
// whole run streams it front to back. And packings (support/packing.h) as kernels.
//
//   packed[selected][panel][reduction loops, row-major][register][lane][k group]
//
// A panel holds the columns of one column group, or with TileShape::panel of several. With k_interleave one
// register holds as many steps of the innermost loop (k_interleave.h); a lane holds the k group of its
// product, neighbouring steps of that loop. Lanes beyond the last column, and steps beyond the last one,
// hold zeros.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/contraction/contraction.h"
#include "compiler/support/packing.h"

#include <functional>
#include <optional>

namespace firn::lower {

// Strides, in elements, of the unpacked operand along each index of the packed one.
struct PackedOperand {
  int64_t selected = 1; // parts chosen by the leading outer dims (batch, groups)
  int64_t selected_stride = 0;
  std::vector<int64_t> extents, strides; // reduction loops
  int64_t columns = 1, column_stride = 0;
  int64_t first_element = 0; // first element in the unpacked operand, if this is a part of it
  plan::TileShape tile;
  int k_group = 1; // k group of the product; the last loop's index counts such groups
  kernel::Scalar element = kernel::Scalar::F32;
  bool in_four_bits = false; // bytes lie as pairs of neighbours in one byte, the first one lower

  int64_t products() const;       // products of the last loop
  int64_t reduction_size() const; // steps, in whole k groups
  int64_t elements() const;       // elements of the packed operand
  // The element of memory that holds one of the packed operand, and how many there are.
  IntExpr place(const IntExpr& element) const { return in_four_bits ? floor_div(element, 2) : element; }
  int64_t line_elements() const; // elements of the packed operand in a cache line
  int64_t places() const { return in_four_bits ? elements() / 2 : elements(); }
  // The place of register `number` of the tile for the values `k` of the reduction loops. Each column group
  // is addressed by its first vector: groups before it hold `columns before it` x reduction_size elements.
  IntExpr index(const IntExpr& selected, const TilePosition& position, int number,
                const std::vector<IntExpr>& k) const;
  // Elements from one product of a column group to the next.
  int64_t step_elements(const TilePosition& position) const;
  // The place where the columns of a group begin in its part.
  IntExpr start(const TilePosition& position) const;
  // The place of line `number` of the elements that a column group reads. A line has `line_elements`; lines
  // count from the group's first element.
  IntExpr line(const TilePosition& position, const IntExpr& number, int64_t line_elements) const;
  Packing packing(int64_t source_elements) const;
};

// One register of a packing. In the packed constant its lanes lie side by side.
struct PackedRegister {
  IntExpr source, packed;       // place of its first element
  std::vector<int64_t> offsets; // offsets of its lanes from `source`; -1: the lane is empty
  int64_t point_stride = 0;     // from point to point in a transformed constant
  // More than 1: so many registers begin here, whose lanes are neighbours in the source of this one's; the
  // stride is theirs in the packed constant.
  int rows = 1;
  int64_t row_stride = 0;
};
// Emits the loops over all registers, of at most `lanes` lanes, and sets the parallel loop. `selected`: the
// number of parts a run has, in the boxes' first dim; none: all. `in_squares`: the body takes several rows.
void emit_packed_registers(kernel::Builder& builder, const Packing& packing, int lanes,
                           const std::function<void(const PackedRegister&)>& body,
                           const std::optional<IntExpr>& selected = std::nullopt, bool in_squares = false);
// Emits a kernel body that packs buffer `source` of such elements into buffer `out`.
void emit_pack(kernel::Builder& builder, const Packing& packing, kernel::Scalar element, int lanes,
               int source, int out, const std::optional<IntExpr>& selected = std::nullopt);

} // namespace firn::lower
