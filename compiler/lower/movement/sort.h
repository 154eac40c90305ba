// Common code for sorting lines: the walk over lines, and a top_k that sorts the whole line because it wants
// many elements.
#pragma once

#include "compiler/lower/element/element_access.h"

namespace firn::lower {

// Walks the lines along `dim` of a tensor of `type` one after the other; each is an item of the kernel. The
// body gets the index of a line's first element.
void emit_sort_lines(KernelMaker& maker, const Type& type, size_t dim,
                     const std::function<void(const Index&)>& body);

// The results are not empty.
void emit_sorted_top_k(LoweringContext& context, const Instruction& top_k);

} // namespace firn::lower
