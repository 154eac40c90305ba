// The arithmetic of shapes: what small tensors of integers and bools hold, as expressions over the symbols of
// dims. One interpretation of the ops that exporters compute shapes with, for the frontend and for passes.
#pragma once

#include "compiler/graph/module.h"

#include <optional>
#include <vector>

namespace firn {

// Whether an expression is short, and its numbers are far from overflow: sums and products of two such ones
// can be computed, and quickly.
bool is_safe_dim(const IntExpr& extent);

// The elements of the instruction's only result in row-major order, from those of its operands; nothing if
// the op is none of shape arithmetic, symbols leave an element open, or an expression would leave what dims
// may be or may wrap in the type.
std::optional<std::vector<IntExpr>> compute_elements(const Instruction& instruction,
                                                     const std::vector<std::vector<IntExpr>>& operands);

// The extent that dim_size gives; nothing if it is counted and no symbol stands for the count.
std::optional<IntExpr> compute_dim_size(const Instruction& dim_size);

} // namespace firn
