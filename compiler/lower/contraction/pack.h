// Packing of a contraction's vector operand: the order in which the register tiles read it, so that a whole
// run streams it front to back.
//
//   packed[selected][column group][reduction loops, row-major][register][lane][k group]
//
// In a group with k_interleave one register holds as many steps of the innermost loop; a lane holds the k
// group of its product, neighbouring steps of that loop. Lanes beyond the last column, and steps beyond the
// last one, hold zeros.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/contraction/contraction.h"

#include <span>

namespace firn::lower {

// Strides, in elements, of the unpacked operand along each index of the packed one.
struct PackedOperand {
  int64_t selected = 1; // parts chosen by the leading outer dims (batch, groups)
  int64_t selected_stride = 0;
  std::vector<int64_t> extents, strides; // of the reduction loops
  int64_t columns = 1, column_stride = 0;
  int64_t first_element = 0; // of the unpacked operand, where this is a part of it
  plan::TileShape tile;
  int k_group = 1; // of the product; the last loop's index counts such groups
  kernel::Scalar element = kernel::Scalar::F32;

  int64_t products() const;       // of the last loop
  int64_t reduction_size() const; // steps, in whole k groups
  int64_t elements() const;       // of the packed operand
  // Where register `number` of the tile lies for the values `k` of the reduction loops. Each column group is
  // addressed by its first vector: groups before it hold `columns before it` x reduction_size elements.
  IntExpr index(const IntExpr& selected, const TilePosition& position, int number,
                const std::vector<IntExpr>& k) const;
};

// Packs `source` (row-major elements of the operand's size) into `out` at compile time.
void pack(const PackedOperand& operand, std::span<const std::byte> source, std::span<std::byte> out);

// Emits a kernel body that packs buffer `source` into buffer `out`, for operands computed at run time.
void emit_pack(kernel::Builder& builder, const PackedOperand& operand, int source, int out);

} // namespace firn::lower
