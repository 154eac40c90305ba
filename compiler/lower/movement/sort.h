// What sorts of lines share: the walk over lines, and top_k of so many elements that a whole line is sorted.
#pragma once

#include "compiler/lower/element/element_access.h"

namespace firn::lower {

// Walks the lines along `dim` of a tensor of `type` one after the other, an item of the kernel each; the body
// gets the index of a line's first element.
void emit_sort_lines(KernelMaker& maker, const Type& type, size_t dim,
                     const std::function<void(const Index&)>& body);

// The results are not empty.
void emit_sorted_top_k(LoweringContext& context, const Instruction& top_k);

} // namespace firn::lower
