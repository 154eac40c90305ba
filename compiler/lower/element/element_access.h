// Access to the elements of tensors in memory, one or a vector of them at a logical index: the one way to
// read operands and store results.
#pragma once

#include "compiler/kernel/builder.h"
#include "compiler/lower/lowering_context.h"

namespace firn::lower {

using Index = std::vector<IntExpr>;

// The elements that a vector holds: index expressions mention `symbol`, and lane i stands for symbol = first
// + i. With a count of 1 there is no vector; `symbol` may be null, else it stands for `first`.
struct Lanes {
  SymbolRef symbol;
  IntExpr first = 0;
  int count = 1;

  // An expression's value in lane 0.
  IntExpr at_first(const IntExpr& expression) const;
  // How far the expression moves from lane to lane; nothing if the step is not constant.
  std::optional<int64_t> step(const IntExpr& expression) const;
};

// Reads or writes a tensor of `type` in parameter `buffer` at a logical index: contiguous lanes as vectors,
// equal ones by a splat, others one by one. Values have value_type(type.dtype, lanes.count).
kernel::Register load_element(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                              const Lanes& lanes);
void store_element(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                   const Lanes& lanes, kernel::Register value);
// Reads or writes elements at an element offset.
kernel::Register load_at(kernel::Builder& builder, int buffer, DType dtype, const IntExpr& offset,
                         const Lanes& lanes);
void store_at(kernel::Builder& builder, int buffer, DType dtype, const IntExpr& offset, const Lanes& lanes,
              kernel::Register value);
// Reads an element for each of the `places`, i32 lanes that are added to the offset.
kernel::Register gather_at(kernel::Builder& builder, int buffer, DType dtype, const IntExpr& offset,
                           kernel::Register places);
// Reads a tensor as load_element does, but no memory outside it: lanes from `valid` on, and those whose index
// lies outside when the code runs, are undefined.
kernel::Register load_valid_lanes(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                                  const Lanes& lanes, int valid);

// Reads `count` consecutive channels from index[1] on, which a blocked layout keeps together.
kernel::Register load_channels(kernel::Builder& builder, int buffer, const Type& type, const Index& index,
                               int count);

// An expression that is the same in all lanes, as an integer of the type.
kernel::Register integer(kernel::Builder& builder, kernel::MachineType type, const IntExpr& expression);
// An index expression as i64 lanes.
kernel::Register index_lanes(kernel::Builder& builder, const IntExpr& expression, const Lanes& lanes);

} // namespace firn::lower
