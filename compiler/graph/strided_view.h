// Values that are another value's elements read with other strides: what chains of slices, transposes,
// broadcasts and reshapes amount to, so that a kernel can read through them instead of a copy.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <vector>

namespace firn {

// Element (i, j, ...) of the value is element offset + i * strides[0] + j * strides[1] + ... of `source` in
// row-major order. Dims of extent 1 have stride 0. Where dims vary, all are expressions over their symbols.
struct StridedView {
  Value source;
  IntExpr offset = 0;
  std::vector<IntExpr> dims, strides;
};

// How an op that only moves data shows its operand's elements, given how the operand shows its own source's.
// Nothing if the op is no such movement, or if no strides can say what it does. Plain layouts only.
std::optional<StridedView> view_through(const Instruction& movement, const StridedView& operand);

// Whether the type is a tensor in row-major order, with dims that are numbers or vary within bounds, none of
// them always 0.
bool is_viewable(const Type& type);
// The value itself as a view; its type must be viewable.
StridedView whole_view(Value value);
// The value as a view of the outermost source that its chain of movements allows; `may_pass` decides whether
// a movement may be looked through.
template <class MayPass> StridedView strided_view(Value value, MayPass may_pass) {
  std::vector<const Instruction*> movements; // the last one first
  for (const Instruction* at = value.def;
       at->num_operands() == 1 && is_viewable(at->operand(0).type()) && may_pass(*at);
       at = at->operand(0).def)
    movements.push_back(at);
  if (movements.empty()) return whole_view(value);
  StridedView view = whole_view(movements.back()->operand(0));
  for (size_t i = movements.size(); i-- > 0;) {
    auto through = view_through(*movements[i], view);
    view = through ? std::move(*through)
           : i > 0 ? whole_view(movements[i - 1]->operand(0))
                   : whole_view(value);
  }
  return view;
}

} // namespace firn
